"""DynamicResources: what it does for pods without resource claims, which is next to nothing."""

from collections.abc import Hashable, Sequence
from typing import ClassVar, Final

import numpy as np

from bayplan.api.claim_objects import ResourceClaim
from bayplan.api.device_objects import DeviceClass, DeviceTaintRule, ResourceSlice
from bayplan.cache.change_log import Rows
from bayplan.cache.listers import Listers
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.interface import (
    NOT_CONCERNED,
    CycleState,
    PostFilterResult,
    PreFilterResult,
    Rejections,
    Scores,
)
from bayplan.framework.status import SUCCESS, Code, Codes, Effect, Normalize, Reason, Status, Traits

_WITHOUT_PRE_FILTER: Final = "not found"
_NOTHING_TO_DEALLOCATE: Final = PostFilterResult(Status(Code.UNSCHEDULABLE))
_STATE_NOT_FOUND: Final = PostFilterResult(Status(Code.ERROR, (_WITHOUT_PRE_FILTER,)))


class DynamicResources:
    """Lets pods without `resourceClaims` through; UnsupportedRules refuses the others before they get here.

    Pods without claims notice it in one place: its PostFilter fails with `not found` where its PreFilter was not run.
    So a pod that an earlier PreFilter rejects for good is told that instead of what preemption says, and preempts
    nobody.

    Upstream: plugins/dynamicresources/dynamicresources.go.
    """

    name: ClassVar[str] = "DynamicResources"
    traits: ClassVar[Traits] = Traits(
        normalize=Normalize.DEFAULT, without_pre_filter=_WITHOUT_PRE_FILTER, reads_pre_filter_later=True
    )

    def __init__(self, listers: Listers) -> None:
        for kind in (DeviceClass, ResourceSlice, ResourceClaim, DeviceTaintRule):
            listers.of(kind)

    def sign_pod(self, pod: PodInfo) -> Hashable:
        return bool(pod.pod.spec.resource_claims)

    def pre_enqueue(self, pod: PodInfo) -> Status:
        return SUCCESS

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
        return NOT_CONCERNED

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        return np.zeros(len(rows), dtype=np.int8)

    def reasons(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Sequence[Reason]:
        return ()

    def post_filter(
        self, state: CycleState, pod: PodInfo, nodes: NodeTable, rejections: Rejections
    ) -> PostFilterResult:
        if self.name in rejections.pre_filtered or pod.pod.spec.resource_claims:
            return _NOTHING_TO_DEALLOCATE
        return _STATE_NOT_FOUND

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        return np.zeros(len(rows), dtype=np.int64)

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        pass

    def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Sequence[Effect]:
        return ()
