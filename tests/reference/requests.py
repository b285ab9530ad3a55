"""Quantities and pod requests worked out slowly, in fractions, straight from the rules: an oracle for tests."""

from fractions import Fraction
from math import ceil

from bayplan.api.objects import Container, Pod, Quantity

DEFAULTS = {"cpu": Fraction(1, 10), "memory": Fraction(200 * 2**20)}
SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 10**3),
    **{suffix: Fraction(1000**power) for power, suffix in enumerate(["", "k", "M", "G", "T", "P", "E"])},
    **{suffix: Fraction(1024**power) for power, suffix in enumerate(["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"], 1)},
}


def exact(quantity: Quantity) -> Fraction:
    """The amount of a valid quantity with a small exponent, rounded up to the thousandths the API server keeps."""
    return max(Fraction(ceil(fraction(quantity) * 1000), 1000), Fraction(0))


def fraction(quantity: Quantity) -> Fraction:
    """The amount of a valid quantity with a small exponent."""
    text = "0" if quantity is None else str(quantity).strip(" ")
    split = max(i for i, character in enumerate(text) if character in "0123456789.") + 1
    head, _, exponent = text.lower().partition("e")
    if exponent.lstrip("+-").isdigit():
        return Fraction(_decimal(head)) * Fraction(10) ** int(exponent)
    return Fraction(_decimal(text[:split])) * SUFFIXES[text[split:]]


def requests(pod: Pod, *, defaults: bool = False, pod_level: bool = True, placed: bool = False) -> dict[str, Fraction]:
    """The pod's requests by name, exact; with the defaults for scoring, and with what is actuated, if asked for."""
    spec, status = pod.spec, pod.status
    own = _supported(spec.resources.requests if spec.resources else None) if pod_level else {}
    missing = dict(DEFAULTS) if defaults else {}
    if own and defaults:
        missing = {n: a for n, a in missing.items() if n not in requests(pod, placed=placed)}
    sums = [_sum(pod, missing, "spec")]
    infeasible = any(c.type == "PodResizePending" and c.reason == "Infeasible" for c in pod.status.conditions or [])
    if placed:
        of_pod = [status.allocated_resources, status.resources.requests if status.resources else None]
        if all(of_pod):
            sums += [_amounts(each) for each in of_pod]
        else:
            sums += [_sum(pod, missing, "allocated"), _sum(pod, missing, "actuated")]
        if own and status.resources:
            own = _largest([own, *(_supported(each) for each in of_pod)][1 if infeasible else 0 :])
    total = _largest(sums[1 if placed and infeasible else 0 :]) | own
    overhead = _amounts(spec.overhead)
    return {n: total.get(n, Fraction(0)) + overhead.get(n, Fraction(0)) for n in total.keys() | overhead.keys()}


def _sum(pod: Pod, missing: dict[str, Fraction], kind: str) -> dict[str, Fraction]:
    """The peak of what runs at once, by what the spec asks for, or by what the kubelet has allocated or actuated."""
    spec = pod.spec
    containers = [missing | _wanted(pod, c, kind) for c in spec.containers]
    inits = [(c, missing | _wanted(pod, c, kind)) for c in spec.init_containers or []]
    moments = [[*containers, *(amounts for c, amounts in inits if c.restart_policy == "Always")]]
    for i, (_, amounts) in enumerate(inits):
        moments.append([*(a for c, a in inits[:i] if c.restart_policy == "Always"), amounts])
    names = {name for moment in moments for amounts in moment for name in amounts}
    return {n: max(sum((a.get(n, Fraction(0)) for a in m), Fraction(0)) for m in moments) for n in names}


def _wanted(pod: Pod, container: Container, kind: str) -> dict[str, Fraction]:
    wanted = container.resources.requests if container.resources else None
    if kind == "spec":
        return _amounts(wanted)
    if any(c.type == "PodResizePending" and c.reason == "Infeasible" for c in pod.status.conditions or []):
        wanted = None
    statuses = [*(pod.status.container_statuses or []), *(pod.status.init_container_statuses or [])]
    for status in [each for each in statuses if each.name == container.name][:1]:
        wanted = status.allocated_resources or wanted
        if kind == "actuated" and status.resources:
            wanted = status.resources.requests or wanted
    return _amounts(wanted)


def _largest(sources: list[dict[str, Fraction]]) -> dict[str, Fraction]:
    return {name: max(s[name] for s in sources if name in s) for name in {n for s in sources for n in s}}


def _supported(quantities: dict[str, Quantity] | None) -> dict[str, Fraction]:
    return {n: a for n, a in _amounts(quantities).items() if n in ("cpu", "memory") or n.startswith("hugepages-")}


def _amounts(quantities: dict[str, Quantity] | None) -> dict[str, Fraction]:
    return {name: exact(quantity) for name, quantity in (quantities or {}).items()}


def _decimal(text: str) -> str:
    return text.rstrip(".") if text.strip("+-.") else "0"
