"""The objects of a simulated cluster, read from files or made up."""

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from bayplan.api.kinds import RESOURCES, Resource, resource_named
from bayplan.api.objects import Node, Pod
from bayplan.api.quantity import QuantityError
from bayplan.api.workload_objects import PriorityClass
from bayplan.cache.listers import NamedObject, key_of
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import node_allocatable
from bayplan.simulate.admission import DEFAULT_NAMESPACE, Admission, AdmissionError, looked_up
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


@dataclass(frozen=True, slots=True)
class SkippedPod:
    """A pod that a simulation goes on without."""

    namespace: str
    name: str
    source: str
    """Where it stands, such as `cluster.yaml: document 3`."""
    message: str
    """Why: the field and what is wrong with it."""


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
_LOOKED_UP: Final[dict[Resource, Decoder[Any]]] = {resource: Decoder(resource.type) for resource in RESOURCES}


def read_cluster(files: Iterable[str]) -> ClusterObjects:
    """The objects in `files`; `-` is standard input.

    A pod that is wrong is skipped and named; anything else that is wrong ends the reading.

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
            elif resource := resource_named(raw.api_version, raw.kind):
                self._take_looked_up(raw, resource)
            else:
                self._ignored[raw.kind] += 1
        except (*DECODE_ERRORS, AdmissionError, QuantityError) as error:
            raise ClusterFileError(f"{_title(raw)}: {field_error(error)}") from None

    def finish(self) -> ClusterObjects:
        admission = Admission(each for each, _ in self._classes.values())
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
        return ClusterObjects(
            [node for node, _ in self._nodes.values()],
            pods,
            self._skipped,
            dict(sorted(self._ignored.items())),
            [obj for obj, _ in self._looked_up.values()],
        )

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

    def _take_looked_up(self, raw: RawObject, resource: Resource) -> None:
        obj = looked_up(_LOOKED_UP[resource](raw.value), resource)
        _, first = self._looked_up.setdefault((resource, key_of(obj.metadata)), (obj, raw))
        _check_first(raw, first, raw.kind)

    def _skip(self, raw: RawObject, message: str) -> None:
        namespace, name = _names(raw)
        self._skipped.append(SkippedPod(namespace or DEFAULT_NAMESPACE, name, raw.where, message))


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
