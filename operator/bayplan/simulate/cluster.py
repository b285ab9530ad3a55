"""Reads the objects of a simulated cluster from files."""

from collections import Counter
from collections.abc import Iterable, Sequence
from copy import copy
from functools import cached_property
from typing import Any, Final, Self, TypeVar

from bayplan.api.errors import DECODE_ERRORS
from bayplan.api.kinds import RESOURCES, Resource, resource_named
from bayplan.api.meta_objects import key_of
from bayplan.api.objects import Node, Pod
from bayplan.api.quantity import QuantityError
from bayplan.api.workload_objects import PodDisruptionBudget, PriorityClass
from bayplan.cache.listers import NamedObject
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import node_allocatable
from bayplan.config.errors import quote_unprintable
from bayplan.simulate.added_objects import holds_template, refused_by_node
from bayplan.simulate.admission import Admission
from bayplan.simulate.admission_policies import DEFAULT_NAMESPACE, POLICIES, AdmissionPolicies, Policy, policy
from bayplan.simulate.changes import NO_CHANGES, Changes, Reference, missing, reference, referring
from bayplan.simulate.cluster_objects import ClusterObjects, SkippedPod
from bayplan.simulate.controllers import MAX_PODS
from bayplan.simulate.documents import ClusterFileError, Decoder, RawObject, field_error, names, printable, title
from bayplan.simulate.drain import DrainedNode, cordoned, drained
from bayplan.simulate.input_files import is_file, objects_in
from bayplan.simulate.looked_up import looked_up
from bayplan.simulate.making import Making
from bayplan.simulate.owned_pods import OwnedPods
from bayplan.simulate.refusals import AdmissionError
from bayplan.simulate.shared_parts import SharedParts
from bayplan.simulate.validation import NOTHING_CHECKED, Validation
from bayplan.simulate.workloads import WORKLOADS, Workload, completed, template_of

K = TypeVar("K")
V = TypeVar("V")

_CORE: Final = ("", "v1")
"""Core kinds may come without apiVersion."""
_NODE: Final = Decoder(Node)
_POD: Final = Decoder(Pod)
_WORKLOADS: Final[dict[type[Workload], Decoder[Any]]] = {kind: Decoder(kind) for kind in WORKLOADS.values()}
_POLICIES: Final[dict[type[Policy], Decoder[Any]]] = {kind: Decoder(kind) for kind in POLICIES.values()}
_LOOKED_UP: Final[dict[Resource, Decoder[Any]]] = {resource: Decoder(resource.type) for resource in RESOURCES}


def read_cluster(
    files: Iterable[str], changes: Changes = NO_CHANGES, validation: Validation = NOTHING_CHECKED
) -> ClusterObjects:
    """The objects in `files`, with `changes`; a directory stands for the files in it, `-` for standard input.

    Workloads get the pods that their controllers would still make. A pod that is wrong is skipped and named; anything
    else that is wrong ends the reading, as does what `validation` has against an object.

    Raises:
        ClusterFileError: a file cannot be read or is given twice, or a document, a node, a class or what plugins look
            up is malformed, or something is to be removed or drained that is not there.
    """
    reader = ObjectReader(as_scheduler=changes.as_scheduler)
    with validation.told():
        for raw in validation.objects_in(files):
            reader.take(raw)
        reader.replace_from_here()
        before = reader.copied() if changes.are_any else None
        are_read = [reader.take(raw) for raw in validation.objects_in(changes.add, are_added=True)]
        if changes.add and not any(are_read):
            reader.skip_unread(", ".join(map(quote_unprintable, changes.add)))
    for each in changes.remove:
        found = None if is_file(each) else reference(each)
        if found is not None:
            reader.remove(found)
            continue
        for raw in objects_in([each]):
            reader.remove(referring(raw.kind, *names(raw)))
    for node in changes.drain:
        reader.drain(node.removeprefix("node/"))
    objects = reader.finish()
    if before is not None:
        objects.before = before.finish
    return objects


class ObjectReader:
    """Takes objects one by one, and makes of them what a simulation works on; workloads get `most_pods` at most.

    Pods can name `known_classes` besides the classes that are taken. Those of objects that replace others count as if
    they named the scheduler `as_scheduler`, if there is one.
    """

    def __init__(
        self,
        *,
        most_pods: int = MAX_PODS,
        known_classes: Sequence[PriorityClass] = (),
        as_scheduler: str | None = None,
    ) -> None:
        self._most_pods = most_pods
        self._as_scheduler = as_scheduler
        self._known_classes = known_classes
        self._nodes: dict[str, tuple[Node, RawObject]] = {}
        self._looked_up: dict[tuple[Resource, str], tuple[NamedObject, RawObject]] = {}
        self._pods: list[tuple[str, Pod]] = []
        """With where they stand; a reference to the raw object would keep the whole file in memory."""
        self._policies: dict[tuple[str, str], tuple[Policy, RawObject]] = {}
        """By kind and key: what new pods are admitted by."""
        self._workloads: dict[tuple[type, str], tuple[Workload, RawObject]] = {}
        self._skipped: list[SkippedPod] = []
        self._ignored: Counter[str] = Counter()
        self._shared = SharedParts()
        self._replaces = False
        self._added: dict[str, list[PodInfo]] = {}
        """The pods of the objects that replace others, by where these stand."""
        self._replaced: dict[str, Workload] = {}
        """What was there before of the workloads that replace others, by where these stand."""
        self._removed: dict[Reference, None] = {}
        self._drained: dict[str, None] = {}

    def copied(self) -> Self:
        """Return a reader that has taken the same objects, which are not held twice."""
        other = copy(self)
        for name, value in vars(self).items():
            if isinstance(value, dict | list):
                setattr(other, name, copy(value))
        return other

    def replace_from_here(self) -> None:
        """Have what is taken from now on replace what has the same kind and name."""
        self._replaces = True
        self._base_pods = len(self._pods)

    @cached_property
    def _pod_keys(self) -> set[str]:
        """The pods that were taken; asked for once all are."""
        return {_pod_key(pod) for _, pod in self._pods}

    def remove(self, found: Reference) -> None:
        """Leave an object out, and what it controls; the pods of a node go elsewhere."""
        kind, namespace, name = found
        key = f"{namespace}/{name}" if namespace else name
        there = (kind == "Node" and name in self._nodes) or (kind == "Pod" and key in self._pod_keys)
        there |= self._policies.pop((kind, key), None) is not None
        if kind == "Namespace":
            there = self._empty(name)
        for resource in (each for each in _LOOKED_UP if each.kind == kind):
            there |= self._looked_up.pop((resource, key), None) is not None
        there |= any((each, key) in self._workloads for each in _WORKLOADS if each.__name__ == kind)
        if not there:
            raise missing(found, "--remove")
        self._removed[found] = None

    def _empty(self, namespace: str) -> bool:
        """Remove all but the pods of a namespace, and return whether there was anything in it."""
        prefix = f"{namespace}/"
        workloads = [key for key in self._workloads if key[1].startswith(prefix)]
        objects = [key for key in self._looked_up if key[1].startswith(prefix)]
        for workload in workloads:
            del self._workloads[workload]
        for obj in objects:
            del self._looked_up[obj]
        return bool(workloads or objects) or any(key.startswith(prefix) for key in self._pod_keys)

    def drain(self, node: str) -> None:
        """Have the pods of a node go elsewhere."""
        if node not in self._nodes:
            raise missing(("Node", "", node), "--drain")
        self._drained[node] = None

    def skip_unread(self, source: str) -> None:
        """Name the files `source`, as of a pod that cannot be read: nothing in them replaces or adds anything."""
        message = "nothing to try: no pod, no workload, and nothing that decides where pods go"
        self._skipped.append(SkippedPod("", "", source, message, "List", 0))

    def take(self, raw: RawObject) -> bool:
        """Take in an object, and return whether its kind is read.

        Raises:
            ClusterFileError: it cannot be; the text names it and the field that is wrong.
        """
        try:
            if raw.kind == "Pod" and raw.api_version in _CORE:
                self._take_pod(raw)
            elif raw.kind == "Node" and raw.api_version in _CORE:
                self._take_node(raw)
            elif (kind := POLICIES.get((raw.api_version or "v1", raw.kind))) is not None:
                obj = policy(_POLICIES[kind](raw.value), (each for each, _ in self._policies.values()))
                self._put(self._policies, (raw.kind, key_of(obj.metadata)), (obj, raw), raw.kind)
            else:
                return self._take_other(raw)
        except (*DECODE_ERRORS, AdmissionError, QuantityError) as error:
            text = field_error(error)
            raise ClusterFileError(f"{title(raw, text)}: {text}") from None
        return True

    def finish(self) -> ClusterObjects:
        """Return all of it; raises ClusterFileError where a workload cannot be made pods of."""
        known = {each.metadata.name: each for each in self._known_classes}
        given = (each for each, _ in (*self._policies.values(), *self._looked_up.values()))
        policies = AdmissionPolicies(given)
        classes = policies.priority_classes
        known |= {each.metadata.name: each for each in classes}
        admission = Admission(known.values(), self._as_scheduler, policies)
        pods = self._admitted(admission)
        if self._removed:
            pods = self._without_removed(pods)
        gone = {name for kind, _, name in self._removed if kind == "Node"}
        told: list[DrainedNode] = []
        if self._drained or gone:
            pods, told = self._evacuated(pods, gone)
        looked_up = [obj for obj, _ in self._looked_up.values()]
        nodes = [node for node, _ in self._nodes.values()]
        making = Making(admission, nodes, self._most_pods, self._added, self._replaced, self._skip)
        pods = making.pods_of([*self._workloads.values()], pods, looked_up)
        pods = self._without_refused(nodes, pods)
        added = [each for each in self._added.values() if each]
        ignored = dict(sorted(self._ignored.items()))
        others = len(self._workloads)
        way, notes = making.making_way, making.notes
        return ClusterObjects(
            nodes, pods, self._skipped, ignored, looked_up, others, classes, told, added, making_way=way, notes=notes
        )

    def _admitted(self, admission: Admission) -> list[PodInfo]:
        pods: list[PodInfo] = []
        seen: set[str] = set()
        replaced = {_pod_key(pod) for _, pod in self._pods[self._base_pods :]}
        for number, (where, pod) in enumerate(self._pods):
            is_added = number >= self._base_pods
            if replaced and not is_added and _pod_key(pod) in replaced:
                continue
            try:
                info = PodInfo(admission.pod(pod, is_added=is_added))
                # Reading them here is what lets everything after this point trust the pod.
                _ = info.requests, info.placed
            except (AdmissionError, QuantityError) as error:
                self._skip_pod(where, pod, str(error))
                continue
            if info.key in seen:
                self._skip_pod(where, pod, "metadata.name: a pod of this name was given before")
            elif info.uid in seen:
                self._skip_pod(where, pod, "metadata.uid: a pod of this uid was given before")
            else:
                seen.update((info.key, info.uid))
                pods.append(info)
                if is_added:
                    self._added[where] = [info]
        return pods

    def _without_removed(self, pods: list[PodInfo]) -> list[PodInfo]:
        """The pods that stay; workloads and nodes are removed with what they control."""
        owned = OwnedPods([each for each, _ in self._workloads.values()], (info.pod for info in pods))
        removed = owned.controlled(self._removed)
        for key in [key for key in self._workloads if (key[0].__name__, *key[1].split("/")) in removed.workloads]:
            del self._workloads[key]
        keys = {f"{namespace}/{name}" for kind, namespace, name in self._removed if kind == "Pod"}
        namespaces = {name for kind, _, name in self._removed if kind == "Namespace"}
        kept = (info for info in pods if info.key not in keys and info.namespace not in namespaces)
        return [info for info in kept if info.uid not in removed.pods]

    def _evacuated(self, pods: list[PodInfo], gone: set[str]) -> tuple[list[PodInfo], list[DrainedNode]]:
        budgets = [each for each, _ in self._looked_up.values() if isinstance(each, PodDisruptionBudget)]
        kept, told = drained(pods, {**self._drained, **dict.fromkeys(sorted(gone))}, gone, budgets)
        for name in self._drained:
            node, raw = self._nodes[name]
            self._nodes[name] = cordoned(node), raw
        for name in gone:
            del self._nodes[name]
        return kept, told

    def _without_refused(self, nodes: Sequence[Node], pods: list[PodInfo]) -> list[PodInfo]:
        """Skip added pods that name their node, and that it would not run; return the others."""
        added = {info.uid: where for where, made in self._added.items() for info in made}
        refused = refused_by_node([info for info in pods if info.uid in added], nodes, pods) if added else {}
        if not refused:
            return pods
        for info in pods:
            if info.uid in refused:
                self._skip_pod(added[info.uid], info.pod, refused[info.uid])
                self._added[added[info.uid]] = []
        return [info for info in pods if info.uid not in refused]

    def _take_pod(self, raw: RawObject) -> None:
        try:
            self._pods.append((raw.where, self._shared.of(_POD(raw.value))))
        except DECODE_ERRORS as error:
            self._skip(raw, field_error(error))

    def _take_node(self, raw: RawObject) -> None:
        node = Admission(()).node(_NODE(raw.value))
        node_allocatable(node)
        self._put(self._nodes, node.metadata.name, (node, raw), "node")

    def _take_other(self, raw: RawObject) -> bool:
        kind = WORKLOADS.get((raw.api_version or "v1", raw.kind))
        resource = resource_named(raw.api_version, raw.kind)
        if resource is not None:
            self._take_looked_up(raw, resource)
        if kind is not None:
            self._take_workload(raw, kind, is_looked_up=resource is not None)
        elif resource is None:
            self._ignored[raw.kind] += 1
            if self._replaces and holds_template(raw.value):
                self._skip(raw, "objects of this kind and apiVersion are not read: no pod of it is tried", pods=0)
        return kind is not None or resource is not None

    def _take_workload(self, raw: RawObject, kind: type[Workload], *, is_looked_up: bool) -> None:
        workload = _WORKLOADS[kind](raw.value)
        if is_looked_up and not template_of(workload)[1].spec.containers:
            # Written for its selector alone, which default spreading asks for.
            return
        workload = completed(workload)
        key = kind, key_of(workload.metadata)
        if self._replaces:
            self._added[raw.where] = []
            if key in self._workloads:
                self._replaced[raw.where] = self._workloads[key][0]
        self._put(self._workloads, key, (workload, raw), raw.kind)

    def _take_looked_up(self, raw: RawObject, resource: Resource) -> None:
        obj = looked_up(_LOOKED_UP[resource](raw.value), resource)
        self._put(self._looked_up, (resource, key_of(obj.metadata)), (obj, raw), raw.kind)

    def _put(self, table: dict[K, tuple[V, RawObject]], key: K, entry: tuple[V, RawObject], what: str) -> None:
        if self._replaces:
            table[key] = entry
        elif (first := table.setdefault(key, entry)) is not entry:
            raise AdmissionError(f"metadata.name: this {what} was given before, in {first[1].where}")

    def _skip_pod(self, where: str, pod: Pod, message: str) -> None:
        namespace = printable(pod.metadata.namespace) or DEFAULT_NAMESPACE
        self._skipped.append(SkippedPod(namespace, printable(pod.metadata.name), where, message))

    def _skip(self, raw: RawObject, message: str, pods: int = 1) -> None:
        namespace, name = names(raw)
        self._skipped.append(SkippedPod(namespace or DEFAULT_NAMESPACE, name, raw.where, message, raw.kind, pods))


def _pod_key(pod: Pod) -> str:
    return f"{pod.metadata.namespace or DEFAULT_NAMESPACE}/{pod.metadata.name}"
