"""What is asked to be otherwise in a cluster from files: objects that come and go, nodes that are drained."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bayplan.api.kinds import NODES, PODS, RESOURCES
from bayplan.simulate.admission_policies import POLICIES
from bayplan.simulate.documents import ClusterFileError
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
}
_CLUSTER_WIDE: Final = frozenset(
    {"Node", "PriorityClass", "RuntimeClass", *(resource.kind for resource in RESOURCES if not resource.namespaced)}
)
_KINDS: Final = frozenset(
    {"Pod", "Node", *(kind for _, kind in (*WORKLOADS, *POLICIES)), *(resource.kind for resource in RESOURCES)}
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


def reference(text: str) -> Reference | None:
    """Return what `KIND/NAME` or `KIND/NAMESPACE/NAME` means, kinds as kubectl knows them; None if it is none."""
    kind_text, *rest = text.split("/")
    kind = _NAMES.get(kind_text.lower())
    if kind is None or not all(rest):
        return None
    if len(rest) == 1:
        return referring(kind, "", rest[0])
    return referring(kind, rest[0], rest[1]) if len(rest) == 2 and kind not in _CLUSTER_WIDE else None


def referring(kind: str, namespace: str, name: str) -> Reference:
    """Return the reference to an object; without a namespace it is in `default` where its kind has any."""
    return kind, "" if kind in _CLUSTER_WIDE else namespace or DEFAULT_NAMESPACE, name


def missing(found: Reference, option: str) -> ClusterFileError:
    """Return the error that there is no such object."""
    kind, namespace, name = found
    place = f" in namespace {namespace}" if namespace else ""
    return ClusterFileError(f"{option}: there is no {kind} {name!a}{place}")
