"""Which taints a pod puts up with."""

from collections.abc import Collection, Iterable, Sequence

from bayplan.api.objects import Taint, Toleration

_FEW = 8


class Tolerance:
    """What tolerations put up with; asking about a taint takes no longer for thousands of them.

    Unknown operators, Gt and Lt among them, match no taint. Source: k8s.io/api core/v1/toleration.go, ToleratesTaint
    with comparison operators off.
    """

    __slots__ = ("_equal", "_exists", "_few")

    def __init__(self, tolerations: Sequence[Toleration] | None) -> None:
        self._few: Sequence[Toleration] | None = tolerations or ()
        if len(self._few) <= _FEW:
            return
        self._few = None
        self._equal: set[tuple[str, str, str]] = set()
        self._exists: set[tuple[str, str]] = set()
        for each in tolerations or ():
            if each.operator in ("", "Equal"):
                self._equal.add((each.key, each.value, each.effect))
            elif each.operator == "Exists":
                self._exists.add((each.key, each.effect))

    def covers(self, taint: Taint) -> bool:
        """Whether some toleration matches the taint."""
        if self._few is not None:
            return tolerates(self._few, taint)
        for key in (taint.key, ""):
            for effect in (taint.effect, ""):
                if (key, effect) in self._exists or (key, taint.value, effect) in self._equal:
                    return True
        return False


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Whether one of a few tolerations matches the taint; as `Tolerance` says."""
    return any(_matches(toleration, taint) for toleration in tolerations)


def find_untolerated_taint(
    taints: Iterable[Taint] | None, tolerance: Tolerance, effects: Collection[str]
) -> Taint | None:
    """The first taint with one of `effects` that is not tolerated, or None.

    Source: component-helpers scheduling/corev1/helpers.go, FindMatchingUntoleratedTaint.
    """
    for taint in taints or ():
        if taint.effect in effects and not tolerance.covers(taint):
            return taint
    return None


def _matches(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"
