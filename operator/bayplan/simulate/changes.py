"""What is asked to be otherwise in a cluster from files: objects that come and go, nodes that are drained.

Also what is tried of nothing, though it was added: unknown kinds with pods, and pods that name their node.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bayplan.api.kinds import CLAIM_TEMPLATES, NODES, POD_GROUPS, PODS, RESOURCES
from bayplan.api.objects import Node
from bayplan.cache import resources
from bayplan.cache.cache import is_finished
from bayplan.cache.pod_info import PodInfo
from bayplan.config.errors import quote
from bayplan.simulate.admission_policies import POLICIES
from bayplan.simulate.documents import ClusterFileError, names
from bayplan.simulate.input_files import is_file, objects_in
from bayplan.simulate.refusals import DEFAULT_NAMESPACE
from bayplan.simulate.workloads import WORKLOADS

Reference = tuple[str, str, str]
"""Kind, namespace and name of an object; kinds without namespaces have "" for it."""

_SHORT: Final = {
    "no": "Node",
    "po": "Pod",
    "deploy": "Deployment",
    "rs": "ReplicaSet",
    "sts": "StatefulSet",
    "ds": "DaemonSet",
    "rc": "ReplicationController",
    "cj": "CronJob",
    "svc": "Service",
    "ns": "Namespace",
    "pdb": "PodDisruptionBudget",
    "pc": "PriorityClass",
    "pv": "PersistentVolume",
    "pvc": "PersistentVolumeClaim",
    "sc": "StorageClass",
    "limits": "LimitRange",
    "pg": POD_GROUPS.kind,
    "pgs": POD_GROUPS.kind,
}
_CLUSTER_WIDE: Final = frozenset(
    {"Node", "PriorityClass", "RuntimeClass", *(resource.kind for resource in RESOURCES if not resource.namespaced)}
)
_KINDS: Final = frozenset(
    {
        "Pod",
        "Node",
        POD_GROUPS.kind,
        CLAIM_TEMPLATES.kind,
        *(kind for _, kind in (*WORKLOADS, *POLICIES)),
        *(resource.kind for resource in RESOURCES),
    }
)


@dataclass(frozen=True, slots=True)
class Changes:
    """What the command line asks for beside the files of the cluster."""

    add: Sequence[str] = ()
    """Files of objects that come, or take the place of those of the same kind and name."""
    remove: Sequence[str] = ()
    """Files of objects that go, or KIND/NAME."""
    drain: Sequence[str] = ()
    """Nodes whose pods have to go elsewhere."""
    as_scheduler: str | None = None
    """The scheduler that the pods of `add` are for, whichever they name."""

    @property
    def are_any(self) -> bool:
        """Whether the cluster is to be another than its files have it."""
        return bool(self.add or self.remove or self.drain)


NO_CHANGES: Final = Changes()


def _known_names() -> Mapping[str, str]:
    names = dict(_SHORT)
    names |= {each.plural: each.kind for each in (NODES, PODS, *RESOURCES)}
    for kind in _KINDS:
        names[kind.lower()] = kind
        names.setdefault(f"{kind.lower()}{'es' if kind.endswith('s') else 's'}", kind)
    return names


_NAMES: Final = _known_names()


def references(asked: Iterable[str]) -> Iterator[Reference]:
    """Yield the objects that are meant: those in files, and what `KIND/NAME` and `KIND/NAMESPACE/NAME` name.

    Kinds are named as kubectl knows them.

    Raises:
        ClusterFileError: one is neither, or a file cannot be read.
    """
    for each in asked:
        if is_file(each):
            yield from (_referring(raw.kind, *names(raw)) for raw in objects_in([each]))
        elif (found := _reference(each)) is not None:
            yield found
        else:
            raise ClusterFileError(f"--remove: {quote(each)}: neither a file nor KIND/NAME of a kind that is read")


def _reference(text: str) -> Reference | None:
    kind_text, *rest = text.split("/")
    kind = _NAMES.get(kind_text.lower())
    if kind is None or not all(rest):
        return None
    if len(rest) == 1:
        return _referring(kind, "", rest[0])
    return _referring(kind, rest[0], rest[1]) if len(rest) == 2 and kind not in _CLUSTER_WIDE else None


def _referring(kind: str, namespace: str, name: str) -> Reference:
    """The reference to an object; without a namespace it is in `default` where its kind has any."""
    return kind, "" if kind in _CLUSTER_WIDE else namespace or DEFAULT_NAMESPACE, name


def missing(found: Reference, option: str) -> ClusterFileError:
    """Return the error that there is no such object."""
    kind, namespace, name = found
    place = f" in namespace {namespace}" if namespace else ""
    return ClusterFileError(f"{option}: there is no {kind} {name!a}{place}")


def holds_template(value: Any) -> bool:  # noqa: ANN401 - a value of a file is anything
    """Whether an object, or what is in it, has a template of pods: it would make some."""
    if isinstance(value, list):
        return any(map(holds_template, value))
    return isinstance(value, dict) and any(
        (str(key).lower().endswith("template") and _has_containers(inner)) or holds_template(inner)
        for key, inner in value.items()
    )


def _has_containers(template: object) -> bool:
    spec = template.get("spec") if isinstance(template, dict) else None
    return isinstance(spec, dict) and isinstance(spec.get("containers"), list)


def refused_by_node(added: Iterable[PodInfo], nodes: Sequence[Node], pods: Sequence[PodInfo]) -> dict[str, str]:
    """Return which pods of `added`, all of them among `pods`, their node would not run, by UID, and why."""
    bound = {info.uid: info.pod.spec.node_name for info in added if not is_finished(info.pod)}
    taken = {name: Counter[str]() for name in bound.values() if name}
    for info in pods if taken else ():
        if info.pod.spec.node_name in taken and not is_finished(info.pod):
            taken[info.pod.spec.node_name].update({resources.PODS: 1, **info.placed.amounts})
    reasons = {name: f"spec.nodeName: there is no node {name[:64]!a}" for name in taken}
    for node in nodes:
        if (amounts := taken.get(name := node.metadata.name)) is not None:
            room = resources.node_allocatable(node)
            short = ", ".join(each for each, amount in amounts.items() if amount > room.get(each, 0))
            reasons[name] = f"spec.nodeName: node {name[:64]!a} has too little {short} for it" if short else ""
    return {uid: reasons[name] for uid, name in bound.items() if reasons.get(name)}
