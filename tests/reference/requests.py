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
    """The amount of a valid quantity with a small exponent, rounded up to the billionths the API server keeps."""
    text = "0" if quantity is None else str(quantity).strip(" ")
    split = max(i for i, character in enumerate(text) if character in "0123456789.") + 1
    head, _, exponent = text.lower().partition("e")
    if exponent.lstrip("+-").isdigit():
        amount = Fraction(_decimal(head)) * Fraction(10) ** int(exponent)
    else:
        amount = Fraction(_decimal(text[:split])) * SUFFIXES[text[split:]]
    return max(Fraction(ceil(amount * 10**9), 10**9), Fraction(0))


def requests(pod: Pod, *, defaults: bool = False, pod_level: bool = True, placed: bool = False) -> dict[str, Fraction]:
    """The pod's requests by name, exact; with the defaults for scoring, and with what is actuated, if asked for."""
    spec, status = pod.spec, pod.status
    own = _amounts(spec.resources.requests if spec.resources else None)
    own = {n: a for n, a in own.items() if n in ("cpu", "memory") or n.startswith("hugepages-")} if pod_level else {}
    overhead = _amounts(spec.overhead)
    if placed and own and status.resources:
        found = _largest(pod, own, _amounts(status.resources.requests), _amounts(status.allocated_resources))
        own = {name: found.get(name, Fraction(0)) for name in own}
    missing = dict(DEFAULTS) if defaults else {}
    if own and defaults:
        missing = {n: a for n, a in missing.items() if n not in requests(pod, placed=placed)}
    containers = [missing | _wanted(pod, c, placed=placed) for c in spec.containers]
    inits = [(c, missing | _wanted(pod, c, placed=placed)) for c in spec.init_containers or []]
    moments = [[*containers, *(amounts for c, amounts in inits if c.restart_policy == "Always")]]
    for i, (_, amounts) in enumerate(inits):
        moments.append([*(a for c, a in inits[:i] if c.restart_policy == "Always"), amounts])
    names = {name for moment in moments for amounts in moment for name in amounts}
    total = {n: max(sum((a.get(n, Fraction(0)) for a in m), Fraction(0)) for m in moments) for n in names} | own
    return {n: total.get(n, Fraction(0)) + overhead.get(n, Fraction(0)) for n in total.keys() | overhead.keys()}


def _wanted(pod: Pod, container: Container, *, placed: bool) -> dict[str, Fraction]:
    wanted = _amounts(container.resources.requests if container.resources else None)
    is_init = container in (pod.spec.init_containers or [])
    if not placed or (is_init and container.restart_policy != "Always"):
        return wanted
    for status in [*(pod.status.init_container_statuses or []), *(pod.status.container_statuses or [])]:
        if status.name == container.name and status.resources:
            return _largest(pod, wanted, _amounts(status.resources.requests), _amounts(status.allocated_resources))
    return wanted


def _largest(pod: Pod, wanted: dict[str, Fraction], *actual: dict[str, Fraction]) -> dict[str, Fraction]:
    infeasible = any(c.type == "PodResizePending" and c.reason == "Infeasible" for c in pod.status.conditions or [])
    sources = list(actual) if infeasible else [wanted, *actual]
    return {name: max(s[name] for s in sources if name in s) for name in {n for s in sources for n in s}}


def _amounts(quantities: dict[str, Quantity] | None) -> dict[str, Fraction]:
    return {name: exact(quantity) for name, quantity in (quantities or {}).items()}


def _decimal(text: str) -> str:
    return text.rstrip(".") if text.strip("+-.") else "0"
