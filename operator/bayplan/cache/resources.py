"""What a pod asks for and what a node offers, in the integers the scheduler computes with."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock

import msgspec

from bayplan.api.objects import Node, Pod, PodSpec
from bayplan.api.quantity import MAX_AMOUNT, bounded, value_of_milli
from bayplan.api.selectors import is_label_key
from bayplan.cache.container_requests import (
    NOTHING,
    ContainerRequests,
    Millis,
    largest,
    millis,
    plus,
    reported_requests,
    reports_repeat_spec,
    requests_of,
    spec_requests,
)
from bayplan.cache.recently_used import RecentlyUsed

_encode = msgspec.msgpack.Encoder().encode

_UNKNOWN_SIZE = 2**20
_UNWRITABLE = (msgspec.MsgspecError, ValueError, OverflowError, RecursionError)
"""Raised for text or a number that no message can carry; a file can hold such."""


def encoded(parts: object, *, largest: int) -> bytes | None:
    """The same bytes for the same parts; None if they are more than `largest`, or cannot be written as bytes.

    Whoever keeps things by such bytes relies on `largest`: with the number kept it bounds the memory that made-up
    objects can take.
    """
    try:
        written = _encode(parts)
    except _UNWRITABLE:
        return None
    return written if len(written) <= largest else None


def encoded_size(parts: object) -> int:
    """How many bytes the parts are; a megabyte if they cannot be written as bytes."""
    try:
        return len(_encode(parts))
    except _UNWRITABLE:
        return _UNKNOWN_SIZE


CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"

DEFAULT_MILLI_CPU = 100
DEFAULT_MEMORY = 200 * 1024 * 1024

HUGEPAGES = "hugepages-"
_NATIVE_NAMESPACE = "kubernetes.io/"
_QUOTA_PREFIX = "requests."

_KEPT_NAMES = 1024
"""How many names of resources are looked up without being read again; more than nodes have."""

_DEFAULTS: Millis = {CPU: DEFAULT_MILLI_CPU, MEMORY: DEFAULT_MEMORY * 1000}


@dataclass(frozen=True, slots=True)
class PodRequests:
    """What one pod takes of a node; relied on by filters, scores and the node totals.

    CPU is in milli-CPU, everything else in whole units (bytes, counts); no amount exceeds TOO_MUCH.

    Attributes:
        amounts: True requests by tracked resource name; names asked for in zero amount are left out.
        non_zero_cpu: What a placed pod adds to the node's non-zero CPU: 100m per container that names none.
        non_zero_memory: Likewise, 200Mi per container that names no memory.
        scoring_cpu: What an incoming pod adds in NodeResourcesFit scoring: with the defaults per container,
            without pod-level requests, as kube-scheduler has it.
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
# Questions about a copy of the cluster are worked out on another thread.
_knowing = Lock()


def pod_requests(pod: Pod) -> PodRequests:
    """What an incoming pod asks for, from its spec alone.

    Sums are rounded up once per pod (component-helpers resource/helpers.go, PodRequests). Pods that ask for
    the same share one answer, as those of one controller do, and a pod before and after it is bound.

    Raises:
        QuantityError: A quantity cannot be read; the message names its field.
    """
    spec = pod.spec
    parts = (spec.containers, spec.init_containers, spec.resources, spec.overhead)
    key = encoded(parts, largest=_LARGEST_KEY)
    if key is None:
        return _requests_of(spec)
    with _knowing:
        known = _known.get(key)
    if known is None:
        known = _requests_of(spec)
        with _knowing:
            _known.put(key, known)
    return known


def _requests_of(spec: PodSpec) -> PodRequests:
    return _pod_requests([spec_requests(spec)], (), _pod_level(spec), spec)


def placed_requests(pod: Pod) -> PodRequests:
    """What the pod takes on its node: as `pod_requests`, but never less than an in-place resize has actuated.

    The sums over all containers of spec, actuated and allocated requests are compared, and the largest counts; after
    an infeasible resize the spec does not count. What the kubelet reports of the whole pod stands for the sums of
    what it reports of containers (component-helpers resource/helpers.go, AggregateContainerRequests).

    Raises:
        QuantityError: A quantity cannot be read; the message names its field.
    """
    spec, status = pod.spec, pod.status
    infeasible = is_resize_infeasible(pod)
    wanted, pod_level = spec_requests(spec), _pod_level(spec)
    of_pod = [NOTHING, NOTHING]
    if status.resources is not None:
        allocated = millis(status.allocated_resources, "status.allocatedResources")
        of_pod = [requests_of(status.resources, "status"), allocated]
        if pod_level:
            pod_level = pod_level_only(largest(of_pod if infeasible else [pod_level, *of_pod]))
    if all(of_pod):
        return _pod_requests([] if infeasible else [wanted], of_pod, pod_level, spec)
    reported = reported_requests(pod, wanted, infeasible=infeasible)
    if reported == (wanted, wanted) and status.resources is None:
        return pod_requests(pod)
    return _pod_requests(reported if infeasible else (wanted, *reported), (), pod_level, spec)


def takes_what_it_asks(pod: Pod) -> bool:
    """Whether the status says nothing by which a placed pod takes other than `pod_requests`; cheap, and mostly so."""
    return pod.status.resources is None and not is_resize_infeasible(pod) and reports_repeat_spec(pod)


def is_resize_infeasible(pod: Pod) -> bool:
    """Whether the kubelet can never do what the spec asks of a running pod, so that the spec does not count."""
    for condition in pod.status.conditions or ():
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def node_allocatable(node: Node) -> dict[str, int]:
    """What a node offers, by tracked resource name: milli-CPU, else whole units; none above MAX_AMOUNT.

    Comes from status.allocatable alone, `pods` included. Negative amounts count as 0; untracked names are
    left out.

    Raises:
        QuantityError: A quantity cannot be read; the message names its field.
    """
    offered = millis(node.status.allocatable, "status.allocatable")
    return {
        name: min(in_columns(name, amount), MAX_AMOUNT)
        for name, amount in offered.items()
        if name == PODS or _is_tracked(name)
    }


def in_columns(name: str, milli: int) -> int:
    """An exact amount, in thousandths, as the node table counts it: milli-CPU, of all else whole units, rounded up."""
    return bounded(milli) if name == CPU else value_of_milli(milli)


@lru_cache(maxsize=_KEPT_NAMES)
def is_scalar(name: str) -> bool:
    """Whether a resource beyond cpu, memory and ephemeral-storage is tracked, under its own name.

    Extended, hugepages-*, kubernetes.io/* and attachable-volumes-* ones are (pkg/scheduler/util/utils.go,
    IsScalarResourceName).
    """
    return name.startswith((HUGEPAGES, "attachable-volumes-")) or _NATIVE_NAMESPACE in name or is_extended(name)


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


def is_hugepages(name: str) -> bool:
    """Whether the resource is huge pages of some size."""
    return name.startswith(HUGEPAGES)


def is_supported_pod_level_resource(name: str) -> bool:
    """Whether requests of the resource may stand for the whole pod."""
    return name in (CPU, MEMORY) or is_hugepages(name)


@lru_cache(maxsize=_KEPT_NAMES)
def _is_tracked(name: str) -> bool:
    return name in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar(name)


def _pod_level(spec: PodSpec) -> Millis:
    """The pod-level requests of the spec; empty if it has none."""
    return pod_level_only(requests_of(spec.resources, "spec")) if spec.resources else NOTHING


def pod_level_only(amounts: Millis) -> Millis:
    """Those of the amounts that a pod as a whole may ask for, or be limited to."""
    return {name: amount for name, amount in amounts.items() if is_supported_pod_level_resource(name)}


def _pod_requests(
    counted: Sequence[ContainerRequests], reported: Sequence[Millis], pod_level: Millis, spec: PodSpec
) -> PodRequests:
    """The requests of a pod whose containers count with the largest of several sums, and of amounts `reported`."""

    def total_with(defaults: Millis) -> Millis:
        return largest([*(each.total(defaults) for each in counted), *reported])

    overhead = millis(spec.overhead, "spec.overhead") if spec.overhead else NOTHING
    total = total_with(NOTHING)
    true = plus(total | pod_level if pod_level else total, overhead)
    scoring = plus(total_with(_DEFAULTS), overhead)
    non_zero = scoring
    if _pod_level(spec):
        missing = {name: amount for name, amount in _DEFAULTS.items() if name not in true}
        non_zero = plus(total_with(missing) | pod_level, overhead)
    amounts = _amounts(true)
    if scoring is true and non_zero is true:
        cpu, memory = amounts.get(CPU, 0), amounts.get(MEMORY, 0)
        return PodRequests(amounts, cpu, memory, cpu, memory, amounts)
    return PodRequests(
        amounts,
        bounded(non_zero.get(CPU, 0)),
        value_of_milli(non_zero.get(MEMORY, 0)),
        bounded(scoring.get(CPU, 0)),
        value_of_milli(scoring.get(MEMORY, 0)),
        _amounts(plus(total, overhead)) if pod_level else amounts,
    )


def _amounts(exact: Millis) -> dict[str, int]:
    return {name: in_columns(name, amount) for name, amount in exact.items() if amount and _is_tracked(name)}
