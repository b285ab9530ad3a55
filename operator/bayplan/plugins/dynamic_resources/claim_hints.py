"""Which changes may help a pod that DynamicResources rejected (upstream: isSchedulableAfterClaimChange and others)."""

from collections.abc import Callable, Sequence

from bayplan.api.claim_objects import ResourceClaim
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.cluster_event import (
    ASSIGNED_POD_DELETE,
    DEVICE_CLASS_ADD_OR_UPDATE,
    DEVICE_TAINT_RULE_ANY,
    NODE_ADD,
    NODE_ALLOCATABLE,
    NODE_LABEL,
    RESOURCE_CLAIM_ANY,
    RESOURCE_SLICE_ADD_OR_UPDATE,
    TARGET_POD_CLAIMS,
    EventRegistration,
    QueueingHint,
    hint,
)
from bayplan.plugins.dynamic_resources.extended_claim import pod_of
from bayplan.plugins.dynamic_resources.pod_claims import ClaimError, claims_of
from bayplan.plugins.extended_resources import ExtendedResources

_Get = Callable[[str], ResourceClaim | None]


def claim_registrations(get: _Get, extended: ExtendedResources) -> Sequence[EventRegistration]:
    """Return the events of a plugin that finds claims by `get`; a rule that changes changes the devices it taints."""

    def gives_back_unwritten(pod: PodInfo, old: PodInfo, new: object) -> bool:
        # No claim tells of devices that a pod took which is on no node after all. kube-scheduler tells nobody.
        if old.pod.spec.node_name:
            return False
        claims = _resolved(old, get)
        have_all = claims is not None and all(each.status.allocation is not None for each in claims)
        return not have_all or bool(extended.asked_by(old))

    def has_claims_now(pod: PodInfo, old: PodInfo, new: PodInfo) -> bool:
        return _resolved(new, get) is not None

    def claim_hint(pod: PodInfo, old: ResourceClaim | None, new: ResourceClaim | None) -> QueueingHint:
        return QueueingHint.QUEUE if _may_help(pod, old, new, get) else QueueingHint.SKIP

    return (
        EventRegistration(NODE_ADD),
        EventRegistration(NODE_LABEL),
        EventRegistration(NODE_ALLOCATABLE),
        EventRegistration(RESOURCE_CLAIM_ANY, claim_hint),
        EventRegistration(ASSIGNED_POD_DELETE, hint(gives_back_unwritten, old=PodInfo)),
        EventRegistration(TARGET_POD_CLAIMS, hint(has_claims_now, old=PodInfo, new=PodInfo)),
        EventRegistration(DEVICE_CLASS_ADD_OR_UPDATE),
        EventRegistration(RESOURCE_SLICE_ADD_OR_UPDATE),
        EventRegistration(DEVICE_TAINT_RULE_ANY),
    )


def _may_help(pod: PodInfo, old: ResourceClaim | None, new: ResourceClaim | None, get: _Get) -> bool:
    had_devices = old is not None and old.status.allocation is not None
    if new is None:
        # Without devices it is what an attempt left behind that failed early, and the pod waits for its end.
        return had_devices or (old is not None and pod_of(old) == pod.uid)
    frees_devices = had_devices and new.status.allocation is None
    # Nobody who waits for another claim need look up all that the pod has.
    if not (frees_devices or new.metadata.namespace == pod.namespace):
        return False
    claims = _resolved(pod, get)
    if claims is None:
        return False
    if frees_devices:
        return True
    is_its_own = any(each.metadata.uid == new.metadata.uid for each in claims)
    return is_its_own and (old is None or old.status != new.status)


def _resolved(pod: PodInfo, get: _Get) -> list[ResourceClaim] | None:
    """Return the pod's claims if all are there."""
    try:
        return claims_of(pod, get)
    except ClaimError:
        return None
