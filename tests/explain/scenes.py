"""A pod and a small cluster, and the engine's explanation of what it decides."""

from collections.abc import Sequence

from tests.evaluation.clusters import build_framework, default_profile

from bayplan.api.objects import Node, Pod
from bayplan.cache.cache import Cache
from bayplan.cache.pod_info import PodInfo
from bayplan.config.types import Profile
from bayplan.explain.changes import OwnChange, changed
from bayplan.explain.explain import Explainer
from bayplan.explain.explanation import Explanation, lines
from bayplan.scheduler.cycle import SchedulingCycle
from bayplan.scheduler.decision import Decision


class Scene:
    """Nodes and the pods on them; every question is answered by an engine of its own."""

    def __init__(self, nodes: Sequence[Node], running: Sequence[Pod] = (), profile: Profile | None = None) -> None:
        self.cache = Cache()
        self.profile = profile or default_profile()
        for node in nodes:
            self.cache.set_node(node)
        for pod in running:
            self.cache.set_pod(PodInfo(pod))

    def decide(self, pod: Pod) -> Decision:
        framework = build_framework(self.profile, self.cache.nodes)
        return SchedulingCycle(self.cache.nodes).schedule(PodInfo(pod), framework)

    def explain(self, pod: Pod) -> Explanation:
        return Explainer(self.cache.nodes).explain(self.decide(pod))

    def text(self, pod: Pod) -> list[str]:
        return list(lines("default/p", self.explain(pod)))

    def fits_on(self, pod: Pod, change: OwnChange) -> bool:
        """Whether the pod fits on the node of `change` once that is made."""
        tried = changed(pod, change)
        assert tried is not None
        framework = build_framework(self.profile, self.cache.nodes)
        return change.node in SchedulingCycle(self.cache.nodes).feasible_nodes(PodInfo(tried), framework)
