"""Which taints a pod puts up with."""

from collections.abc import Collection, Iterable

from bayplan.api.objects import Taint, Toleration


def tolerates(tolerations: Iterable[Toleration] | None, taint: Taint) -> bool:
    """Whether some toleration matches the taint; unknown operators, Gt and Lt among them, match none.

    Source: k8s.io/api core/v1/toleration.go, ToleratesTaint with comparison operators off.
    """
    return any(_matches(toleration, taint) for toleration in tolerations or ())


def find_untolerated_taint(
    taints: Iterable[Taint] | None, tolerations: Collection[Toleration] | None, effects: Collection[str]
) -> Taint | None:
    """The first taint with one of `effects` that no toleration matches, or None.

    Source: component-helpers scheduling/corev1/helpers.go, FindMatchingUntoleratedTaint.
    """
    for taint in taints or ():
        if taint.effect in effects and not tolerates(tolerations, taint):
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
