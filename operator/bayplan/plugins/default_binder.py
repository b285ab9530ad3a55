"""DefaultBinder: bind by posting the pod's binding subresource."""

from typing import ClassVar

from bayplan.cache.pod_info import PodInfo
from bayplan.framework.interface import Binding
from bayplan.framework.status import Traits


class DefaultBinder:
    """Names the binding to post (upstream: plugins/defaultbinder/default_binder.go)."""

    name: ClassVar[str] = "DefaultBinder"
    traits: ClassVar[Traits] = Traits()

    def bind(self, pod: PodInfo, node_name: str) -> Binding:
        return Binding(pod.namespace, pod.name, pod.uid, node_name)
