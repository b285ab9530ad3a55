"""Pod groups from files, of either kind, as the API server would have them."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from msgspec import structs

from bayplan.api.errors import DECODE_ERRORS
from bayplan.api.kinds import CRD_POD_GROUPS, POD_GROUPS
from bayplan.api.pod_group_objects import PodGroup as PodGroupObject
from bayplan.cache.group_members import GroupSource
from bayplan.groups.pod_group import PodGroup, read_pod_group
from bayplan.simulate.documents import ClusterFileError, Decoder, RawObject, field_error, title
from bayplan.simulate.refusals import AdmissionError, stored

SOURCES: Final[Mapping[tuple[str, str], GroupSource]] = {
    (each.api_version, each.kind): GroupSource(each.api_version) for each in (POD_GROUPS, CRD_POD_GROUPS)
}
"""Whose kind a group is of, by apiVersion and kind."""

_decode: Final = Decoder(PodGroupObject)


def pod_groups(objects: Iterable[RawObject], priority_of: Callable[[str], int]) -> list[PodGroup]:
    """Return the groups that these objects of `SOURCES` describe; `priority_of` knows the priorities of classes.

    Raises:
        ClusterFileError: one cannot be read, or the API server would refuse it.
    """
    groups = []
    for raw in objects:
        try:
            groups.append(_stored(_decode(raw.value), SOURCES[raw.api_version, raw.kind], priority_of))
        except (*DECODE_ERRORS, AdmissionError) as error:
            text = field_error(error)
            raise ClusterFileError(f"{title(raw, text)}: {text}") from None
    return groups


def _stored(obj: PodGroupObject, source: GroupSource, priority_of: Callable[[str], int]) -> PodGroup:
    """The group; one of Kubernetes' own kind has the priority of its class, a CRD's object is stored as it is.

    Upstream: plugin/pkg/admission/priority admitPodGroup.
    """
    obj = structs.replace(obj, metadata=stored(obj.metadata, "podgroups/"))
    if source is GroupSource.NATIVE:
        spec = obj.spec
        policy = spec.scheduling_policy
        if policy is None or (policy.basic is None) == (policy.gang is None):
            raise AdmissionError("spec.schedulingPolicy: must have exactly one of basic and gang")
        if policy.gang is not None and policy.gang.min_count < 1:
            raise AdmissionError("spec.schedulingPolicy.gang.minCount: must be at least 1")
        priority = priority_of(spec.priority_class_name)
        if spec.priority not in (None, priority) and not obj.metadata.resource_version:
            raise AdmissionError(f"spec.priority: Forbidden: {spec.priority}; the PriorityClass gives {priority}")
        if spec.priority is None:
            obj = structs.replace(obj, spec=structs.replace(spec, priority=priority))
    return read_pod_group(obj, source)
