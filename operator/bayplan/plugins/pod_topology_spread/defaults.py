"""Which pods belong together by default: those that the same services and the same owner select."""

from bayplan.api.selectors import compile_label_selector
from bayplan.api.workload_objects import ReplicaSet, ReplicationController, Service, StatefulSet
from bayplan.cache.listers import Listers
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

    @property
    def version(self) -> int:
        """Grows whenever a selector may be another."""
        return (
            self._services.version
            + self._controllers.version
            + self._replica_sets.version
            + self._stateful_sets.version
        )

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
        owner = next((each for each in pod.pod.metadata.owner_references or () if each.controller), None)
        if owner is None:
            return requirements_of_labels(labels)
        key = f"{pod.namespace}/{owner.name}"
        workload: ReplicaSet | StatefulSet | None = None
        match owner.api_version, owner.kind:
            case "v1", "ReplicationController":
                controller = self._controllers.get(key)
                if controller is not None:
                    labels.update(controller.spec.selector or {})
            case "apps/v1", "ReplicaSet":
                workload = self._replica_sets.get(key)
            case "apps/v1", "StatefulSet":
                workload = self._stateful_sets.get(key)
        requirements = requirements_of_labels(labels)
        selector = None if workload is None else workload.spec.selector
        # One that cannot be read adds nothing.
        if selector is not None and not compile_label_selector(selector).error:
            requirements += requirements_of(selector)
        return requirements
