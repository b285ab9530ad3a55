"""The objects of a simulated cluster, read from files or made up."""

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from bayplan.api.kinds import RESOURCES, Resource, resource_named
from bayplan.api.objects import Node, Pod
from bayplan.api.quantity import QuantityError
from bayplan.api.storage_objects import PersistentVolumeClaim
from bayplan.api.workload_objects import PriorityClass
from bayplan.cache.listers import NamedObject, key_of
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import node_allocatable
from bayplan.simulate.admission import DEFAULT_NAMESPACE, Admission, AdmissionError, looked_up
from bayplan.simulate.controllers import Controllers, WorkloadError
from bayplan.simulate.documents import (
    DECODE_ERRORS,
    STDIN,
    ClusterFileError,
    Decoder,
    RawObject,
    field_error,
    raw_objects,
    read_file,
)
from bayplan.simulate.made_pods import made_claims, made_pods
from bayplan.simulate.workloads import WORKLOADS, Workload, completed, template_of


@dataclass(frozen=True, slots=True)
class SkippedPod:
    """A pod, or the pods of a workload, that a simulation goes on without."""

    namespace: str
    name: str
    source: str
    """Where it stands, such as `cluster.yaml: document 3`."""
    message: str
    """Why: the field and what is wrong with it."""
    kind: str = "Pod"
    """Of a workload that cannot be read, all pods that it would have are skipped."""
    pods: int = 1


@dataclass(slots=True)
class ClusterObjects:
    """What a simulation works on; every quantity in it has been read once, so none can fail later."""

    nodes: list[Node] = field(default_factory=list)
    pods: list[PodInfo] = field(default_factory=list)
    skipped: list[SkippedPod] = field(default_factory=list)
    ignored_kinds: dict[str, int] = field(default_factory=dict)
    """How many objects of other kinds there were, by kind."""
    looked_up: list[NamedObject] = field(default_factory=list)
    """What plugins look up: objects of the kinds in `bayplan.api.kinds`."""


_CORE: Final = ("", "v1")
"""Core kinds may come without apiVersion."""
_SCHEDULING: Final = "scheduling.k8s.io/v1"
_NODE: Final = Decoder(Node)
_POD: Final = Decoder(Pod)
_CLASS: Final = Decoder(PriorityClass)
_VALUE: Final = Decoder(dict)
_WORKLOADS: Final[dict[type[Workload], Decoder[Any]]] = {kind: Decoder(kind) for kind in WORKLOADS.values()}
_LOOKED_UP: Final[dict[Resource, Decoder[Any]]] = {resource: Decoder(resource.type) for resource in RESOURCES}


def read_cluster(files: Iterable[str]) -> ClusterObjects:
    """The objects in `files`; `-` is standard input.

    Workloads get the pods that their controllers would still make. A pod that is wrong is skipped and named; anything
    else that is wrong ends the reading.

    Raises:
        ClusterFileError: a file cannot be read or is given twice, or a document, a node, a class or what plugins look
            up is malformed.
    """
    reader = _Reader()
    given: set[str] = set()
    for name in files:
        file = name if name == STDIN or "\0" in name else os.path.realpath(name)
        if file in given:
            raise ClusterFileError(f"{name}: is given twice")
        given.add(file)
        for raw in raw_objects(read_file(name), name):
            reader.take(raw)
    return reader.finish()


class _Reader:
    def __init__(self) -> None:
        self._nodes: dict[str, tuple[Node, RawObject]] = {}
        self._looked_up: dict[tuple[Resource, str], tuple[NamedObject, RawObject]] = {}
        self._pods: list[tuple[RawObject, Pod]] = []
        self._classes: dict[str, tuple[PriorityClass, RawObject]] = {}
        self._workloads: dict[tuple[type, str], tuple[Workload, RawObject]] = {}
        self._skipped: list[SkippedPod] = []
        self._ignored: Counter[str] = Counter()

    def take(self, raw: RawObject) -> None:
        try:
            if raw.kind == "Pod" and raw.api_version in _CORE:
                self._take_pod(raw)
            elif raw.kind == "Node" and raw.api_version in _CORE:
                self._take_node(raw)
            elif raw.kind == "PriorityClass" and raw.api_version == _SCHEDULING:
                self._take_class(raw)
            else:
                self._take_other(raw)
        except (*DECODE_ERRORS, AdmissionError, QuantityError) as error:
            raise ClusterFileError(f"{_title(raw)}: {field_error(error)}") from None

    def finish(self) -> ClusterObjects:
        admission = Admission(each for each, _ in self._classes.values())
        pods = self._admitted(admission)
        looked_up = [obj for obj, _ in self._looked_up.values()]
        if self._workloads:
            self._make_pods(admission, pods, looked_up)
        nodes = [node for node, _ in self._nodes.values()]
        return ClusterObjects(nodes, pods, self._skipped, dict(sorted(self._ignored.items())), looked_up)

    def _admitted(self, admission: Admission) -> list[PodInfo]:
        pods: list[PodInfo] = []
        seen: set[str] = set()
        for raw, pod in self._pods:
            try:
                info = PodInfo(admission.pod(pod))
                # Reading them here is what lets everything after this point trust the pod.
                _ = info.requests, info.placed
            except (AdmissionError, QuantityError) as error:
                self._skip(raw, str(error))
                continue
            if info.key in seen:
                self._skip(raw, "metadata.name: a pod of this name was given before")
            elif info.uid in seen:
                self._skip(raw, "metadata.uid: a pod of this uid was given before")
            else:
                seen |= {info.key, info.uid}
                pods.append(info)
        return pods

    def _make_pods(self, admission: Admission, pods: list[PodInfo], looked_up: list[NamedObject]) -> None:
        """Add what the controllers of the workloads would make: pods, and what goes with them."""
        workloads, raws = zip(*self._workloads.values(), strict=True)
        nodes = [node for node, _ in self._nodes.values()]
        try:
            batches = Controllers(workloads, (info.pod for info in pods), nodes).batches()
        except WorkloadError as error:
            raise ClusterFileError(f"{_title(raws[error.index])}: {error}") from None
        claims = {key for resource, key in self._looked_up if resource.type is PersistentVolumeClaim}
        for index, batch in batches:
            try:
                pods.extend(made_pods(batch, admission))
            except (AdmissionError, QuantityError) as error:
                self._skip(raws[index], f"{batch.path}.{error}", pods=len(batch.members))
                continue
            if batch.replica_set is not None:
                looked_up.append(batch.replica_set)
            looked_up.extend(each for each in made_claims(batch) if key_of(each.metadata) not in claims)

    def _take_pod(self, raw: RawObject) -> None:
        try:
            self._pods.append((raw, _POD(raw.value)))
        except DECODE_ERRORS as error:
            self._skip(raw, field_error(error))

    def _take_node(self, raw: RawObject) -> None:
        node = Admission(()).node(_NODE(raw.value))
        node_allocatable(node)
        _, first = self._nodes.setdefault(node.metadata.name, (node, raw))
        _check_first(raw, first, "node")

    def _take_class(self, raw: RawObject) -> None:
        priority_class = _CLASS(raw.value)
        _, first = self._classes.setdefault(priority_class.metadata.name, (priority_class, raw))
        _check_first(raw, first, raw.kind)

    def _take_other(self, raw: RawObject) -> None:
        kind = WORKLOADS.get((raw.api_version or "v1", raw.kind))
        resource = resource_named(raw.api_version, raw.kind)
        if resource is not None:
            self._take_looked_up(raw, resource)
        if kind is not None:
            self._take_workload(raw, kind, is_looked_up=resource is not None)
        elif resource is None:
            self._ignored[raw.kind] += 1

    def _take_workload(self, raw: RawObject, kind: type[Workload], *, is_looked_up: bool) -> None:
        workload = _WORKLOADS[kind](raw.value)
        if is_looked_up and not template_of(workload)[1].spec.containers:
            # Written for its selector alone, which default spreading asks for.
            return
        workload = completed(workload)
        _, first = self._workloads.setdefault((kind, key_of(workload.metadata)), (workload, raw))
        _check_first(raw, first, raw.kind)

    def _take_looked_up(self, raw: RawObject, resource: Resource) -> None:
        obj = looked_up(_LOOKED_UP[resource](raw.value), resource)
        _, first = self._looked_up.setdefault((resource, key_of(obj.metadata)), (obj, raw))
        _check_first(raw, first, raw.kind)

    def _skip(self, raw: RawObject, message: str, pods: int = 1) -> None:
        namespace, name = _names(raw)
        self._skipped.append(SkippedPod(namespace or DEFAULT_NAMESPACE, name, raw.where, message, raw.kind, pods))


def _check_first(raw: RawObject, first: RawObject, what: str) -> None:
    if raw is not first:
        raise AdmissionError(f"metadata.name: this {what} was given before, in {first.where}")


def _title(raw: RawObject) -> str:
    _, name = _names(raw)
    return f'{raw.where}: {raw.kind} "{name}"' if name else f"{raw.where}: {raw.kind}"


def _names(raw: RawObject) -> tuple[str, str]:
    """The namespace and name of an object that may be malformed, safe to print."""
    try:
        meta = _VALUE(raw.value).get("metadata")
    except DECODE_ERRORS:
        return "", ""
    if not isinstance(meta, dict):
        return "", ""
    return _printable(meta.get("namespace")), _printable(meta.get("name"))


def _printable(value: object) -> str:
    if not isinstance(value, str):
        return ""
    value = value[:253]
    return value if value.isascii() and value.isprintable() else ascii(value)[1:-1]
