"""Reads the objects of a simulated cluster from files."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Self

from msgspec import json, structs

from bayplan.api.errors import DECODE_ERRORS
from bayplan.api.kinds import CLAIM_TEMPLATES, NODES, RESOURCES
from bayplan.api.meta_objects import key_of
from bayplan.api.objects import Node, Pod
from bayplan.api.quantity import QuantityError
from bayplan.api.workload_objects import PodDisruptionBudget, PriorityClass
from bayplan.cache.group_members import GroupSource
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import node_allocatable
from bayplan.cache.shared_parts import SharedParts
from bayplan.config.errors import quote_unprintable
from bayplan.shown_text import counted
from bayplan.simulate.admission import Admission
from bayplan.simulate.admission_policies import POLICIES, AdmissionPolicies, Policy, policy
from bayplan.simulate.changes import (
    NO_CHANGES,
    Changes,
    Reference,
    holds_template,
    missing,
    references,
    refused_by_node,
)
from bayplan.simulate.cluster_objects import ClusterObjects, SkippedPod
from bayplan.simulate.controllers import MAX_PODS, OwnedPods, workload_key
from bayplan.simulate.decode_errors import field_error
from bayplan.simulate.documents import ClusterFileError, Decoder, RawObject, names, printable, title
from bayplan.simulate.drain import DrainedNode, cordoned, drained
from bayplan.simulate.looked_up import SOURCES, looked_up, pod_groups
from bayplan.simulate.making import Making
from bayplan.simulate.refusals import DEFAULT_NAMESPACE, AdmissionError, GeneratedNames
from bayplan.simulate.released_claims import on_nodes, released
from bayplan.simulate.validation import NOTHING_CHECKED, Validation
from bayplan.simulate.workloads import AUTOSCALERS, WORKLOADS, Autoscaler, Workload, autoscaled, completed, template_of

_POD: Final = Decoder(Pod)
_AUTOSCALER: Final = Decoder(Autoscaler)
_LOOKED_UP: Final = {each.type: each for each in (*RESOURCES, CLAIM_TEMPLATES)}
_TYPES: Final[defaultdict[tuple[str, str], list[type[Any]]]] = defaultdict(list)
"""What is made of an object, by apiVersion and kind: plugins look some workloads up, too."""
for _each in (NODES, *_LOOKED_UP.values()):
    _TYPES[_each.api_version, _each.kind].append(_each.type)
for _kind, _type in (*POLICIES.items(), *WORKLOADS.items()):
    _TYPES[_kind].append(_type)
_WORKLOADS: Final = frozenset(WORKLOADS.values())
_DECODERS: Final = {each: Decoder(each) for types in _TYPES.values() for each in types}


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
    for found in references(changes.remove):
        reader.remove(found)
    for node in changes.drain:
        reader.drain(node.removeprefix("node/"))
    objects = reader.finish()
    if before is not None:
        objects.before = before.finish
    return objects


@dataclass(eq=False, kw_only=True)
class ObjectReader:
    """Takes objects one by one, and makes of them what a simulation works on; workloads get `most_pods` at most.

    Pods can name `known_classes` besides the classes that are taken. Those of objects that replace others count as if
    they named the scheduler `as_scheduler`, if there is one.
    """

    most_pods: int = MAX_PODS
    known_classes: Sequence[PriorityClass] = ()
    as_scheduler: str | None = None
    _objects: dict[tuple[type, str], tuple[Any, RawObject]] = field(default_factory=dict, init=False)
    """All but pods, by type and key."""
    _pods: list[tuple[str, Pod]] = field(default_factory=list, init=False)
    """With where they stand; a reference to the raw object would keep the whole file in memory."""
    _autoscalers: dict[tuple[str, str], Autoscaler] = field(default_factory=dict, init=False)
    """By kind and key of what they scale."""
    _pod_groups: dict[tuple[GroupSource, str, str], RawObject | None] = field(default_factory=dict, init=False)
    """None of those that were removed."""
    _skipped: list[SkippedPod] = field(default_factory=list, init=False)
    _ignored: Counter[str] = field(default_factory=Counter, init=False)
    _shared: SharedParts = field(default_factory=SharedParts, init=False)
    _replaces: bool = field(default=False, init=False)
    _added: dict[str, list[PodInfo]] = field(default_factory=dict, init=False)
    """The pods of the objects that replace others, by where these stand."""
    _replaced: dict[str, Workload] = field(default_factory=dict, init=False)
    """What was there before of the workloads that replace others, by where these stand."""
    _names: GeneratedNames = field(default_factory=GeneratedNames, init=False)
    _removed: dict[Reference, None] = field(default_factory=dict, init=False)
    _drained: dict[str, None] = field(default_factory=dict, init=False)

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
        key, prefix = (f"{namespace}/{name}" if namespace else name), f"{name}/"
        found_here = [each for each in self._objects if (each[0].__name__, each[1]) == (kind, key)]
        # With nodes and workloads goes what they control, once all is known.
        gone = [each for each in found_here if each[0] is not Node and each[0] not in _WORKLOADS]
        there = bool(found_here) or (kind == "Pod" and key in self._pod_keys)
        if kind == "Namespace":
            gone += [each for each in self._objects if each[1].startswith(prefix)]
            there = bool(gone) or any(each.startswith(prefix) for each in self._pod_keys)
        groups = [each for each in self._pod_groups if found in {("PodGroup", *each[1:]), ("Namespace", "", each[1])}]
        for each in gone:
            del self._objects[each]
        for group in groups:
            self._pod_groups[group] = None
        if not there and not groups:
            raise missing(found, "--remove")
        self._removed[found] = None

    def drain(self, node: str) -> None:
        """Have the pods of a node go elsewhere."""
        if (Node, node) not in self._objects:
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
        named = raw.api_version or "v1", raw.kind
        is_pod, is_autoscaler = named == ("v1", "Pod"), named in AUTOSCALERS
        types = _TYPES.get(named, ())
        try:
            if is_pod:
                self._take_pod(raw)
            elif is_autoscaler:
                autoscaler = _AUTOSCALER(raw.value)
                target, namespace = autoscaler.spec.scale_target_ref, autoscaler.metadata.namespace
                self._autoscalers[target.kind, f"{namespace or DEFAULT_NAMESPACE}/{target.name}"] = autoscaler
            elif named in SOURCES:
                source, (namespace, name) = SOURCES[named], names(raw)
                self._pod_groups[source, namespace or DEFAULT_NAMESPACE, name] = raw
            for kind in types:
                self._put(kind, raw, self._names.named(_DECODERS[kind](raw.value), raw.value))
        except (*DECODE_ERRORS, AdmissionError, QuantityError) as error:
            text = field_error(error)
            raise ClusterFileError(f"{title(raw, text)}: {text}") from None
        if is_pod or is_autoscaler or named in SOURCES or types:
            return True
        self._ignored[raw.kind] += 1
        if self._replaces and holds_template(json.decode(raw.value)):
            self._skip(raw, "objects of this kind and apiVersion are not read: no pod of it is tried", pods=0)
        return False

    def finish(self) -> ClusterObjects:
        """Return all of it; raises ClusterFileError where a workload cannot be made pods of."""
        policies = AdmissionPolicies(each for each, _ in self._objects.values())
        classes = policies.priority_classes
        known = {each.metadata.name: each for each in (*self.known_classes, *classes)}
        admission = Admission(known.values(), self.as_scheduler, policies)
        pods = self._admitted(admission)
        placed = on_nodes(pods)
        if self._removed:
            pods = self._without_removed(pods)
        gone = {name for kind, _, name in self._removed if kind == "Node"}
        pods, told = self._evacuated(pods, gone) if self._drained or gone else (pods, [])
        looked_up = [obj for (kind, _), (obj, _) in self._objects.items() if kind in _LOOKED_UP]
        looked_up = released(looked_up, placed - on_nodes(pods))
        nodes = [obj for (kind, _), (obj, _) in self._objects.items() if kind is Node]
        making = Making(admission, nodes, self.most_pods, self._added, self._replaced, self._skip)
        workloads = [self._autoscaled(key, making.notes) for key in self._objects if key[0] in _WORKLOADS]
        pods = making.pods_of(workloads, pods, looked_up)
        pods = self._without_refused(nodes, pods)
        added = [each for each in self._added.values() if each]
        ignored = dict(sorted(self._ignored.items()))
        way, notes = making.making_way, making.notes
        groups = pod_groups(filter(None, self._pod_groups.values()), admission.priority_of)
        objects = ClusterObjects(
            nodes, pods, self._skipped, ignored, looked_up, len(workloads), classes, groups, told, added, way, notes
        )
        objects.group_sources = {source for source, *_ in self._pod_groups}
        return objects

    def _autoscaled(self, key: tuple[type, str], notes: list[str]) -> tuple[Workload, RawObject]:
        """The workload with the replicas that its autoscaler, if it has one, gives it at least."""
        (workload, raw), kind = self._objects[key], key[0].__name__
        found = self._autoscalers.get((kind, key[1]))
        least = 1 if found is None or found.spec.min_replicas is None else found.spec.min_replicas
        scaled = autoscaled(workload, least)
        if scaled is not workload:
            notes.append(f"{kind} {key[1]}: its HorizontalPodAutoscaler gives it {counted(least, 'replica')}")
        return scaled, raw

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
        workloads = {workload_key(each): key for key, (each, _) in self._objects.items() if key[0] in _WORKLOADS}
        owned = OwnedPods([self._objects[key][0] for key in workloads.values()], (info.pod for info in pods))
        gone, of_them = owned.controlled((namespace, kind, name) for kind, namespace, name in self._removed)
        for each in gone & workloads.keys():
            del self._objects[workloads[each]]
        keys = {f"{namespace}/{name}" for kind, namespace, name in self._removed if kind == "Pod"}
        namespaces = {name for kind, _, name in self._removed if kind == "Namespace"}
        kept = (info for info in pods if info.key not in keys and info.namespace not in namespaces)
        return [info for info in kept if info.uid not in of_them]

    def _evacuated(self, pods: list[PodInfo], gone: set[str]) -> tuple[list[PodInfo], list[DrainedNode]]:
        budgets = [each for each, _ in self._objects.values() if isinstance(each, PodDisruptionBudget)]
        kept, told = drained(pods, {**self._drained, **dict.fromkeys(sorted(gone))}, gone, budgets)
        for name in self._drained:
            node, raw = self._objects[Node, name]
            self._objects[Node, name] = cordoned(node), raw
        for name in gone:
            del self._objects[Node, name]
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
            self._pods.append((raw.where, self._shared.of(self._names.named(_POD(raw.value), raw.value))))
        except DECODE_ERRORS as error:
            self._skip(raw, field_error(error))

    def _put(self, kind: type, raw: RawObject, obj: Any) -> None:  # noqa: ANN401 - an object of any type
        """Hold an object as the API server would store it."""
        is_workload, what = kind in _WORKLOADS, raw.kind
        if kind is Node:
            obj, what = Admission(()).node(obj), "node"
            node_allocatable(obj)
        elif is_workload:
            if len(_TYPES[raw.api_version or "v1", raw.kind]) > 1 and not template_of(obj)[1].spec.containers:
                # Written for its selector alone, which default spreading asks for.
                return
            obj = completed(obj)
            if self._replaces and obj.metadata.deletion_timestamp is not None:
                obj = structs.replace(obj, metadata=structs.replace(obj.metadata, deletion_timestamp=None))
        elif kind in _LOOKED_UP:
            obj = looked_up(obj, _LOOKED_UP[kind])
        else:
            obj = policy(obj, (each for each, _ in self._objects.values() if isinstance(each, Policy)))
        key, entry = (kind, obj.metadata.name if kind is Node else key_of(obj.metadata)), (obj, raw)
        if not self._replaces:
            if (first := self._objects.setdefault(key, entry)) is not entry:
                raise AdmissionError(f"metadata.name: this {what} was given before, in {first[1].where}")
            return
        if is_workload:
            self._added[raw.where] = []
            if key in self._objects:
                self._replaced[raw.where] = self._objects[key][0]
        self._objects[key] = entry

    def _skip_pod(self, where: str, pod: Pod, message: str) -> None:
        namespace = printable(pod.metadata.namespace) or DEFAULT_NAMESPACE
        self._skipped.append(SkippedPod(namespace, printable(pod.metadata.name), where, message))

    def _skip(self, raw: RawObject, message: str, pods: int = 1) -> None:
        namespace, name = names(raw)
        self._skipped.append(SkippedPod(namespace or DEFAULT_NAMESPACE, name, raw.where, message, raw.kind, pods))


def _pod_key(pod: Pod) -> str:
    return f"{pod.metadata.namespace or DEFAULT_NAMESPACE}/{pod.metadata.name}"
