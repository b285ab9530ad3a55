"""What pods without constraints of their own are spread with: the selectors of their services and controllers."""

from collections.abc import Iterable, Mapping
from itertools import chain, count

from bayplan.api.meta_objects import LabelSelector
from bayplan.api.selectors import compile_label_selector
from bayplan.api.workload_objects import ReplicaSet, ReplicationController, Service, StatefulSet
from bayplan.cache.change_log import KeyFollower
from bayplan.cache.listers import Lister, Listers
from bayplan.cache.pod_info import PodInfo
from bayplan.plugins.pod_topology_spread.constraints import (
    PodSelector,
    Requirement,
    requirements_of,
    requirements_of_labels,
)


class DefaultSelectors:
    """Deduces selectors from Services, ReplicationControllers, ReplicaSets and StatefulSets.

    Making one makes these kinds wanted (upstream: plugins/helper/spread.go DefaultSelector).
    """

    def __init__(self, listers: Listers) -> None:
        self._services = listers.of(Service)
        self._controllers = listers.of(ReplicationController)
        self._replica_sets = listers.of(ReplicaSet)
        self._stateful_sets = listers.of(StatefulSet)
        self._selecting = _SelectingServices(self._services)

    @property
    def version(self) -> int:
        """Grows whenever a selector may be another."""
        workloads = self._controllers.version + self._replica_sets.version + self._stateful_sets.version
        return self._services.version + workloads

    def inputs(self, pod: PodInfo) -> tuple[int, object]:
        """Return what the pod's selector follows from besides the pod: equal while that is the same.

        Neither the status of these objects nor anything of another namespace is part of it.
        """
        return self._selecting.version_in(pod.namespace), self._selector_of_owner(pod)

    def selector(self, pod: PodInfo) -> PodSelector:
        """Return what the pod's services and its controller select together; empty if there is neither."""
        labels: dict[str, str] = {}
        own = pod.pod.metadata.labels or {}
        for service in self._services.in_namespace(pod.namespace):
            selected = service.spec.selector
            if selected and all(own.get(key) == value for key, value in selected.items()):
                labels.update(selected)
        return PodSelector(self._with_owner(pod, labels))

    def _with_owner(self, pod: PodInfo, labels: dict[str, str]) -> list[Requirement]:
        selector = self._selector_of_owner(pod)
        if isinstance(selector, Mapping):
            labels.update(selector)
            return requirements_of_labels(labels)
        requirements = requirements_of_labels(labels)
        # One that cannot be read adds nothing.
        if selector is not None and not compile_label_selector(selector).error:
            requirements += requirements_of(selector)
        return requirements

    def _selector_of_owner(self, pod: PodInfo) -> Mapping[str, str] | LabelSelector | None:
        owner = next((each for each in pod.pod.metadata.owner_references or () if each.controller), None)
        if owner is None:
            return None
        key = f"{pod.namespace}/{owner.name}"
        workload: ReplicationController | ReplicaSet | StatefulSet | None = None
        match owner.api_version, owner.kind:
            case "v1", "ReplicationController":
                workload = self._controllers.get(key)
            case "apps/v1", "ReplicaSet":
                workload = self._replica_sets.get(key)
            case "apps/v1", "StatefulSet":
                workload = self._stateful_sets.get(key)
        return None if workload is None else workload.spec.selector


class _SelectingServices:
    """Tells when the services of a namespace came to select by other labels."""

    def __init__(self, services: Lister[Service]) -> None:
        self._services = services
        self._changes = KeyFollower(services.changes)
        self._number = count(1)
        self._known: dict[str, dict[str, Mapping[str, str]]] = {}
        self._versions: dict[str, int] = {}

    def version_in(self, namespace: str) -> int:
        """Return a number that no other set of selectors of the namespace's services ever had; 0 for none."""
        keys: Iterable[str] | None = self._changes.follow()
        if keys is None:
            keys = {*chain.from_iterable(self._known.values()), *self._services.objects}
        for key in keys:
            self._read(key)
        return self._versions.get(namespace, 0)

    def _read(self, key: str) -> None:
        namespace = key.rpartition("/")[0]
        known = self._known.get(namespace, {})
        service = self._services.get(key)
        selected = (service and service.spec.selector) or {}
        if selected == known.get(key, {}):
            return
        self._versions[namespace] = next(self._number)
        if selected:
            self._known.setdefault(namespace, {})[key] = selected
            return
        del known[key]
        if not known:
            del self._known[namespace], self._versions[namespace]
