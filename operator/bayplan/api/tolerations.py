"""Which taints a pod puts up with."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from bayplan.api.objects import Taint, Toleration

_FEW: Final = 8
_HARD_EFFECTS: Final = ("NoSchedule", "NoExecute")
_COMPARING: Final = ("Lt", "Gt")
_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]{0,18}")


class Tolerance:
    """What tolerations put up with; asking about a taint takes no longer for thousands of them, but for Lt and Gt.

    Lt and Gt match no taint unless it `compares`, unknown operators never. Source: k8s.io/api core/v1/toleration.go,
    ToleratesTaint; kube-scheduler compares where the feature gate TaintTolerationComparisonOperators is on.
    """

    __slots__ = ("_compares", "_comparing", "_equal", "_exists", "_few")

    def __init__(self, tolerations: Sequence[Toleration] | None, *, compares: bool = False) -> None:
        self._compares = compares
        self._few: Sequence[Toleration] | None = tolerations or ()
        if len(self._few) <= _FEW:
            return
        self._few = None
        self._equal: set[tuple[str, str, str]] = set()
        self._exists: set[tuple[str, str]] = set()
        self._comparing = [each for each in tolerations or () if compares and each.operator in _COMPARING]
        for each in tolerations or ():
            if each.operator in ("", "Equal"):
                self._equal.add((each.key, each.value, each.effect))
            elif each.operator == "Exists":
                self._exists.add((each.key, each.effect))

    def covers(self, taint: Taint) -> bool:
        """Whether some toleration matches the taint."""
        if self._few is not None:
            return tolerates(self._few, taint, compares=self._compares)
        for key in (taint.key, ""):
            for effect in (taint.effect, ""):
                if (key, effect) in self._exists or (key, taint.value, effect) in self._equal:
                    return True
        return tolerates(self._comparing, taint, compares=True)

    def repelled_by(self, taints: Sequence[Taint] | None) -> bool:
        """Whether one of the taints keeps pods away and is not tolerated.

        Source: component-helpers scheduling/corev1/helpers.go, FindMatchingUntoleratedTaint.
        """
        # Most nodes have none, and hints ask about every node that changes.
        return bool(taints) and any(each.effect in _HARD_EFFECTS and not self.covers(each) for each in taints or ())


def tolerates(tolerations: Iterable[Toleration], taint: Taint, *, compares: bool = False) -> bool:
    """Whether one of a few tolerations matches the taint; as `Tolerance` says."""
    return any(_matches(toleration, taint, compares=compares) for toleration in tolerations)


def _matches(toleration: Toleration, taint: Taint, *, compares: bool) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    if toleration.operator in _COMPARING:
        return compares and _compare(toleration, taint)
    return toleration.operator == "Exists"


def _compare(toleration: Toleration, taint: Taint) -> bool:
    wanted, value = _integer(toleration.value), _integer(taint.value)
    if wanted is None or value is None:
        return False
    return value < wanted if toleration.operator == "Lt" else value > wanted


def _integer(text: str) -> int | None:
    """Read an integer of 64 bits that is written without a plus sign or leading zeros, as the API has them."""
    value = int(text) if _INTEGER.fullmatch(text) else 2**63
    return value if -(2**63) <= value < 2**63 else None
