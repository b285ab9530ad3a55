"""What a pod asks for and what a node offers, in the integers the scheduler computes with."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from bayplan.api.meta_objects import Quantity
from bayplan.api.objects import Container, ContainerStatus, Node, Pod, PodSpec, ResourceRequirements
from bayplan.api.quantity import MAX_AMOUNT, QuantityError, milli_of_nano, nano, value_of_nano
from bayplan.api.selectors import is_label_key
from bayplan.cache.encoded import encoded
from bayplan.cache.recently_used import RecentlyUsed

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"

DEFAULT_MILLI_CPU = 100
DEFAULT_MEMORY = 200 * 1024 * 1024

_HUGEPAGES = "hugepages-"
_NATIVE_NAMESPACE = "kubernetes.io/"
_QUOTA_PREFIX = "requests."

_KEPT_NAMES = 1024
"""How many names of resources are looked up without being read again; more than nodes have."""

_Nanos = dict[str, int]
_NOTHING: _Nanos = {}
_DEFAULTS: _Nanos = {CPU: DEFAULT_MILLI_CPU * 10**6, MEMORY: DEFAULT_MEMORY * 10**9}


@dataclass(frozen=True, slots=True)
class PodRequests:
    """What one pod takes of a node; relied on by filters, scores and the node totals.

    CPU is in milli-CPU, everything else in whole units (bytes, counts); no amount exceeds TOO_MUCH.

    Attributes:
        amounts: True requests by tracked resource name; names asked for in zero amount are left out.
        non_zero_cpu: What a placed pod adds to the node's non-zero CPU: 100m per container that names none.
        non_zero_memory: Likewise, 200Mi per container that names no memory.
        scoring_cpu: What an incoming pod adds in NodeResourcesFit scoring: with the defaults per container,
            without pod-level requests, as kube-scheduler 1.36 has it.
        scoring_memory: Likewise for memory.
        scoring_amounts: `amounts` as NodeResourcesFit scoring sees them, without pod-level requests.
    """

    amounts: dict[str, int]
    non_zero_cpu: int
    non_zero_memory: int
    scoring_cpu: int
    scoring_memory: int
    scoring_amounts: dict[str, int]


_LARGEST_KEY = 4096
_KEPT_BYTES = 8 * 2**20
_BYTES_PER_KEY_BYTE = 16
"""What the requests that a key stands for take in memory, for a byte of the key."""
_known: RecentlyUsed[bytes, PodRequests] = RecentlyUsed(_KEPT_BYTES, lambda key, _: _BYTES_PER_KEY_BYTE * len(key))


def pod_requests(pod: Pod) -> PodRequests:
    """What an incoming pod asks for, from its spec alone.

    Sums are exact and rounded up once per pod (component-helpers resource/helpers.go, PodRequests). Pods that ask for
    the same share one answer, as those of one controller do, and a pod before and after it is bound.

    Raises:
        QuantityError: A quantity cannot be read; the message names its field.
    """
    spec = pod.spec
    parts = (spec.containers, spec.init_containers, spec.resources, spec.overhead)
    key = encoded(parts, largest=_LARGEST_KEY)
    if key is None:
        return _requests_of(spec)
    return _known.get(key) or _known.put(key, _requests_of(spec))


def _requests_of(spec: PodSpec) -> PodRequests:
    containers = [_requests(c.resources, "spec.containers", i) for i, c in enumerate(spec.containers)]
    inits = [
        (_requests(c.resources, "spec.initContainers", i), _is_sidecar(c))
        for i, c in enumerate(spec.init_containers or ())
    ]
    pod_level = _supported(_requests(spec.resources, "spec")) if spec.resources else _NOTHING
    overhead = _nanos(spec.overhead, "spec.overhead") if spec.overhead else _NOTHING
    return _pod_requests(containers, inits, pod_level, overhead)


def placed_requests(pod: Pod) -> PodRequests:
    """What the pod takes on its node: as `pod_requests`, but never less than an in-place resize has actuated.

    A container counts with the largest of spec, actuated and allocated requests; after an infeasible resize
    the spec does not count (component-helpers resource/helpers.go, determineEffectiveRequests).

    Raises:
        QuantityError: A quantity cannot be read; the message names its field.
    """
    spec, status = pod.spec, pod.status
    infeasible = _is_resize_infeasible(pod)
    statuses = _statuses(status.container_statuses, "status.containerStatuses")
    statuses |= _statuses(status.init_container_statuses, "status.initContainerStatuses")
    containers = [
        _effective(_requests(c.resources, "spec.containers", i), statuses.get(c.name), infeasible)
        for i, c in enumerate(spec.containers)
    ]
    inits = []
    for i, c in enumerate(spec.init_containers or ()):
        wanted, sidecar = _requests(c.resources, "spec.initContainers", i), _is_sidecar(c)
        inits.append((_effective(wanted, statuses.get(c.name), infeasible) if sidecar else wanted, sidecar))
    pod_level = _supported(_requests(spec.resources, "spec")) if spec.resources else _NOTHING
    if pod_level and status.resources is not None:
        actual = (
            _requests(status.resources, "status"),
            _nanos(status.allocated_resources, "status.allocatedResources"),
        )
        effective = _effective(pod_level, actual, infeasible)
        pod_level = {name: effective.get(name, 0) for name in pod_level}
    overhead = _nanos(spec.overhead, "spec.overhead") if spec.overhead else _NOTHING
    return _pod_requests(containers, inits, pod_level, overhead)


def node_allocatable(node: Node) -> dict[str, int]:
    """What a node offers, by tracked resource name: milli-CPU, else whole units; none above MAX_AMOUNT.

    Comes from status.allocatable alone, `pods` included. Negative amounts count as 0; untracked names are
    left out.

    Raises:
        QuantityError: A quantity cannot be read; the message names its field.
    """
    nanos = _nanos(node.status.allocatable, "status.allocatable")
    return {
        name: min(milli_of_nano(amount) if name == CPU else value_of_nano(amount), MAX_AMOUNT)
        for name, amount in nanos.items()
        if name == PODS or _is_tracked(name)
    }


@lru_cache(maxsize=_KEPT_NAMES)
def is_scalar(name: str) -> bool:
    """Whether a resource beyond cpu, memory and ephemeral-storage is tracked, under its own name.

    Extended, hugepages-*, kubernetes.io/* and attachable-volumes-* ones are (pkg/scheduler/util/utils.go,
    IsScalarResourceName).
    """
    return name.startswith((_HUGEPAGES, "attachable-volumes-")) or _NATIVE_NAMESPACE in name or is_extended(name)


@lru_cache(maxsize=_KEPT_NAMES)
def is_extended(name: str) -> bool:
    """Whether the resource is an extended one, such as example.com/gpu.

    Source: pkg/apis/core/v1/helper/helpers.go, IsExtendedResourceName: a qualified name outside kubernetes.io
    that also makes a valid quota name.
    """
    return (
        "/" in name
        and _NATIVE_NAMESPACE not in name
        and not name.startswith(_QUOTA_PREFIX)
        and is_label_key(_QUOTA_PREFIX + name)
    )


@lru_cache(maxsize=_KEPT_NAMES)
def _is_tracked(name: str) -> bool:
    return name in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar(name)


def _is_sidecar(container: Container) -> bool:
    return container.restart_policy == "Always"


def _is_resize_infeasible(pod: Pod) -> bool:
    for condition in pod.status.conditions or ():
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _requests(resources: ResourceRequirements | None, path: str, index: int | None = None) -> _Nanos:
    if resources is None or not resources.requests:
        return _NOTHING
    try:
        return {name: nano(quantity) for name, quantity in resources.requests.items()}
    except QuantityError:
        where = path if index is None else f"{path}[{index}]"
        return _nanos(resources.requests, f"{where}.resources.requests")


def _nanos(quantities: Mapping[str, Quantity] | None, path: str) -> _Nanos:
    amounts: _Nanos = {}
    for name, quantity in (quantities or {}).items():
        try:
            amounts[name] = nano(quantity)
        except QuantityError as error:
            shown = name if name.isascii() and name.isprintable() else ascii(name)
            raise QuantityError(f"{path}[{shown[:64]}]: {error}") from None
    return amounts


def _supported(amounts: _Nanos) -> _Nanos:
    """The requests that are allowed to stand for the whole pod."""
    return {n: amount for n, amount in amounts.items() if n in (CPU, MEMORY) or n.startswith(_HUGEPAGES)}


def _statuses(statuses: Iterable[ContainerStatus] | None, path: str) -> dict[str, tuple[_Nanos, _Nanos]]:
    """Actuated and allocated requests by container name, of those that report resources."""
    return {
        s.name: (
            _requests(s.resources, path, i),
            _nanos(s.allocated_resources, f"{path}[{i}].allocatedResources"),
        )
        for i, s in enumerate(statuses or ())
        if s.resources is not None
    }


def _effective(wanted: _Nanos, actual: tuple[_Nanos, _Nanos] | None, infeasible: bool) -> _Nanos:
    if actual is None:
        return wanted
    result: _Nanos = {}
    for amounts in actual if infeasible else (wanted, *actual):
        _raise_to(result, amounts)
    return result


def _pod_requests(
    containers: Sequence[_Nanos], inits: Sequence[tuple[_Nanos, bool]], pod_level: _Nanos, overhead: _Nanos
) -> PodRequests:
    total = _total(containers, inits)
    true = _plus(total | pod_level if pod_level else total, overhead)
    scoring = _plus(_with_defaults(containers, inits, _DEFAULTS, total), overhead)
    non_zero = scoring
    if pod_level:
        missing = {name: amount for name, amount in _DEFAULTS.items() if name not in true}
        non_zero = _plus(_with_defaults(containers, inits, missing, total) | pod_level, overhead)
    amounts = _amounts(true)
    if scoring is true and non_zero is true:
        cpu, memory = amounts.get(CPU, 0), amounts.get(MEMORY, 0)
        return PodRequests(amounts, cpu, memory, cpu, memory, amounts)
    return PodRequests(
        amounts,
        milli_of_nano(non_zero.get(CPU, 0)),
        value_of_nano(non_zero.get(MEMORY, 0)),
        milli_of_nano(scoring.get(CPU, 0)),
        value_of_nano(scoring.get(MEMORY, 0)),
        _amounts(_plus(total, overhead)) if pod_level else amounts,
    )


def _with_defaults(
    containers: Sequence[_Nanos], inits: Sequence[tuple[_Nanos, bool]], defaults: _Nanos, total: _Nanos
) -> _Nanos:
    """The total when each container that leaves out a name of `defaults` asks for the default."""
    if not inits and len(containers) == 1 and defaults.keys() <= containers[0].keys():
        return total
    return _total([defaults | c for c in containers], [(defaults | c, sidecar) for c, sidecar in inits])


def _total(containers: Sequence[_Nanos], inits: Sequence[tuple[_Nanos, bool]]) -> _Nanos:
    """The peak of what runs at once: containers and sidecars, or an init container and earlier sidecars."""
    if len(containers) == 1 and not inits:
        return containers[0]
    running: _Nanos = {}
    for amounts in containers:
        _add_to(running, amounts)
    sidecars: _Nanos = {}
    peak: _Nanos = {}
    for amounts, is_sidecar in inits:
        if is_sidecar:
            _add_to(running, amounts)
            _add_to(sidecars, amounts)
        else:
            _raise_to(peak, _plus(amounts, sidecars))
    _raise_to(running, peak)
    return running


def _plus(left: _Nanos, right: _Nanos) -> _Nanos:
    if not right:
        return left
    result = dict(left)
    _add_to(result, right)
    return result


def _add_to(target: _Nanos, amounts: _Nanos) -> None:
    for name, amount in amounts.items():
        target[name] = target.get(name, 0) + amount


def _raise_to(target: _Nanos, amounts: _Nanos) -> None:
    for name, amount in amounts.items():
        if amount > target.get(name, -1):
            target[name] = amount


def _amounts(nanos: _Nanos) -> dict[str, int]:
    return {
        name: milli_of_nano(amount) if name == CPU else value_of_nano(amount)
        for name, amount in nanos.items()
        if amount and _is_tracked(name)
    }
