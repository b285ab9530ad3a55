"""Rules of pods that no plugin of this version enforces: such pods are refused rather than placed against them."""

from collections.abc import Hashable
from typing import ClassVar

from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.interface import CycleState, PreFilterResult
from bayplan.framework.status import SUCCESS, Code, Status, Traits

_PLUGIN = "DynamicResources"


class UnsupportedRules:
    """Refuses pods with resource claims: kube-scheduler's DynamicResources enforces them and does not exist here.

    Runs first in every profile, whatever is enabled. The rejection carries the name of that plugin.
    """

    name: ClassVar[str] = "UnsupportedRules"
    traits: ClassVar[Traits] = Traits()

    def sign_pod(self, pod: PodInfo) -> Hashable:
        return bool(pod.pod.spec.resource_claims)

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
        if not pod.pod.spec.resource_claims:
            return PreFilterResult(SUCCESS)
        text = f"pod has resource claims, which bayplan does not schedule yet ({_PLUGIN})"
        return PreFilterResult(Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (text,), _PLUGIN))
