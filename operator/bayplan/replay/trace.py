"""Traces: which pods ask for what, when they come and how long they run, and which nodes there may be."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal

import msgspec
from msgspec import structs

from bayplan.api.meta_objects import ObjectMeta, Quantity
from bayplan.api.objects import (
    Container,
    Node,
    NodeSpec,
    NodeStatus,
    Pod,
    PodSpec,
    ResourceRequirements,
    Taint,
    Toleration,
)
from bayplan.api.quantity import QuantityError, milli
from bayplan.cache.resources import CPU, PODS, PodRequests, node_allocatable, pod_requests
from bayplan.config.errors import InputError, quote
from bayplan.simulate.decode_errors import field_error
from bayplan.simulate.input_files import InputFile

_Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
_Priority = Annotated[int, msgspec.Meta(ge=-(2**31), le=10**9)]
"""Those above are for the system's own pods, such as those of DaemonSets."""
_Amounts = dict[str, Quantity]

_LINES_A_PIECE: Final = 10_000
_HEADER_MISSING: Final = "a trace begins with its header, a line with pools, templates and seconds"
HOSTNAME: Final = "kubernetes.io/hostname"


class _Strict(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """A line of a trace or a part of one: what is not listed here is an error."""


class StrictTaint(Taint, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A taint, as on a Node."""

    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class StrictToleration(Toleration, frozen=True, forbid_unknown_fields=True):
    """A toleration, as in a Pod."""


class NodePool(_Strict, frozen=True):
    """Nodes that are alike, and how many of them a fixed pool has."""

    name: str
    capacity: _Amounts
    """What is paid for; its cpu are the cores of core-hours."""
    allocatable: _Amounts | None = None
    """What pods may take, those of DaemonSets included; the capacity where it is not given."""
    labels: dict[str, str] = {}
    taints: list[StrictTaint] = []
    daemons: _Amounts = {}
    """What the pods of DaemonSets ask for on each node."""
    count: Annotated[int, msgspec.Meta(ge=0, le=100_000)] = 0
    """How many nodes there are if the pool is fixed."""

    def node(self, name: str) -> Node:
        """Return a node of the pool."""
        labels = {HOSTNAME: name, **self.labels}
        offered = self.capacity if self.allocatable is None else self.allocatable
        return Node(
            metadata=ObjectMeta(name=name, uid=f"node-{name}", labels=labels),
            spec=NodeSpec(taints=[*self.taints] or None),
            status=NodeStatus(allocatable={PODS: 110, **offered}, capacity={PODS: 110, **self.capacity}),
        )


class PodTemplate(_Strict, frozen=True):
    """What pods that are alike ask for and put up with."""

    name: str
    requests: _Amounts
    node_selector: dict[str, str] = {}
    tolerations: list[StrictToleration] = []
    priority: _Priority = 0

    def spec(self, scheduler_name: str, priority: int | None = None) -> PodSpec:
        """Return the spec of its pods."""
        return PodSpec(
            scheduler_name=scheduler_name,
            priority=self.priority if priority is None else priority,
            node_selector=self.node_selector or None,
            tolerations=[*self.tolerations] or None,
            containers=[Container(name="main", resources=ResourceRequirements(requests=self.requests))],
        )


class TraceHeader(_Strict, frozen=True):
    """The first line of a trace."""

    pools: Annotated[list[NodePool], msgspec.Meta(min_length=1)]
    """Those that are preferred come first."""
    templates: list[PodTemplate]
    seconds: Annotated[float, msgspec.Meta(gt=0, le=1e9)]
    """When the replay ends; nothing is counted beyond."""


class TracePod(_Strict, frozen=True):
    """A pod: one line each, in the order in which they come."""

    arrival_seconds: _Seconds
    duration_seconds: _Seconds
    """How long it runs once it is bound."""
    template: str = ""
    requests: _Amounts | None = None
    """In place of a template."""
    priority: _Priority | None = None
    """In place of the template's."""
    owner: str = ""
    """The controller that makes the pod again when it is evicted; without one it is lost."""
    expected_seconds: Annotated[float, msgspec.Meta(gt=0, le=1e9)] | None = None
    """For how long it says it expects to run, in its annotation."""


@dataclass(frozen=True)
class Trace:
    """A trace whose quantities and references were read once, so that none can fail later."""

    header: TraceHeader
    pods: Sequence[TracePod]
    templates: Mapping[str, PodTemplate]
    """By name, with one for each set of inline requests, under their JSON, which pods name instead of them."""

    def template_of(self, pod: TracePod) -> PodTemplate:
        """Return the template of a pod of the trace."""
        return self.templates[pod.template]


def requests_of(template: PodTemplate) -> PodRequests:
    """Return what a pod of the template takes of a node."""
    return pod_requests(Pod(spec=template.spec("")))


_header: Final = msgspec.json.Decoder(TraceHeader)
_pod: Final = msgspec.json.Decoder(TracePod)
_encoder: Final = msgspec.json.Encoder()


def decode_trace(file: InputFile, text: bytes) -> Trace:
    """Return the trace of the JSON lines that a file was found to hold.

    Raises:
        InputError: a line is wrong; it is named with its field.
    """
    lines = text.splitlines()
    number = 1
    try:
        header = _read_header(lines)
        pods: list[TracePod] = []
        templates = {each.name: each for each in header.templates}
        latest = 0.0
        for number, line in enumerate(lines[1:], 2):  # noqa: B007 - the number is told of the line that is wrong
            pod = _checked(_pod.decode(line), templates, latest)
            latest = pod.arrival_seconds
            pods.append(pod)
    except msgspec.DecodeError as error:
        raise InputError(f"{file.shown}:{number}: {field_error(error)}") from None
    except (QuantityError, _WrongError) as error:
        raise InputError(f"{file.shown}:{number}: {error}") from None
    return Trace(header, pods, templates)


class _WrongError(ValueError):
    """A line that decodes and is wrong all the same; its text begins with the field."""


def trace_of(header: TraceHeader, pods: Iterable[TracePod]) -> Trace:
    """Return a trace that was made up; its pods name templates."""
    return Trace(header, [*pods], {each.name: each for each in header.templates})


def trace_lines(trace: Trace) -> Iterator[bytes]:
    """Yield what `decode_trace` reads, in pieces of many lines."""
    yield _encoder.encode(trace.header) + b"\n"
    for start in range(0, len(trace.pods), _LINES_A_PIECE):
        yield _encoder.encode_lines(trace.pods[start : start + _LINES_A_PIECE])


def _read_header(lines: Sequence[bytes]) -> TraceHeader:
    if not lines or not lines[0].strip():
        raise _WrongError(f"is empty: {_HEADER_MISSING}")
    if b'"arrivalSeconds"' in lines[0]:
        raise _WrongError(f"the first line is of a pod: {_HEADER_MISSING}")
    header = _header.decode(lines[0])
    _check_header(header)
    return header


def _check_header(header: TraceHeader) -> None:
    _check_names("pools", [each.name for each in header.pools])
    _check_names("templates", [each.name for each in header.templates])
    for index, pool in enumerate(header.pools):
        path = f"pools[{index}]"
        for field, amounts in (("capacity", pool.capacity), ("allocatable", pool.allocatable or {})):
            _check_amounts(f"{path}.{field}", amounts)
        _check_amounts(f"{path}.daemons", pool.daemons)
        if node_allocatable(Node(status=NodeStatus(allocatable=pool.capacity))).get(CPU, 0) <= 0:
            raise _WrongError(f"{path}.capacity.cpu: Required value: it is what is paid for")
    for index, template in enumerate(header.templates):
        _check_amounts(f"templates[{index}].requests", template.requests)
        if HOSTNAME in template.node_selector:
            where = f"templates[{index}].nodeSelector"
            raise _WrongError(
                f"{where}: {quote(HOSTNAME)} is the name of one node, and replay names nodes as they come"
            )


def _check_names(path: str, names: Sequence[str]) -> None:
    seen: set[str] = set()
    for index, name in enumerate(names):
        if not name or name in seen:
            raise _WrongError(f"{path}[{index}].name: {'Duplicate' if name else 'Required'} value: {quote(name)}")
        seen.add(name)


def _checked(pod: TracePod, templates: dict[str, PodTemplate], latest: float) -> TracePod:
    """Refuse what is wrong with a pod; its inline requests become a template, which it names from then on."""
    if pod.arrival_seconds < latest:
        raise _WrongError(f"arrivalSeconds: {pod.arrival_seconds:g} is before the line above, {latest:g}")
    if bool(pod.template) == (pod.requests is not None):
        raise _WrongError("template: give it or requests, one of the two")
    if pod.requests is None:
        if pod.template not in templates:
            raise _WrongError(f"template: the header has none that is named {quote(pod.template)}")
        return pod
    name = msgspec.json.encode(pod.requests, order="deterministic").decode()
    if name not in templates:
        _check_amounts("requests", pod.requests)
        templates[name] = PodTemplate(name, pod.requests)
    return structs.replace(pod, template=name, requests=None)


def _check_amounts(path: str, amounts: Mapping[str, Quantity]) -> None:
    for name, amount in amounts.items():
        try:
            milli(amount)
        except QuantityError as error:
            raise _WrongError(f"{path}.{name}: {error}") from None
        # They would be read as 0, as the scheduler reads them.
        if str(amount).startswith("-"):
            raise _WrongError(f"{path}.{name}: Invalid value: {quote(str(amount))}: must be no less than 0")
