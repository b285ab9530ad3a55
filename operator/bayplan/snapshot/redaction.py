"""Snapshots and traces that tell no names: the same decisions come of them, and whose they are cannot be told."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, structs

from bayplan.api.meta_objects import LabelSelectorRequirement, OwnerReference
from bayplan.api.objects import Container, NodeSelectorRequirement, Pod, Taint, Toleration, Volume
from bayplan.api.storage_objects import (
    CSIDriver,
    CSINodeDriver,
    ObjectReference,
    PersistentVolumeClaim,
    TopologySelectorLabelRequirement,
)
from bayplan.api.workload_objects import PodGroup
from bayplan.cache.container_requests import ANY_IP
from bayplan.cache.group_members import POD_GROUP_LABEL
from bayplan.replay.trace import Trace, trace_of
from bayplan.simulate.workloads import WORKLOADS
from bayplan.snapshot.hashes import Hashes, MadeNames
from bayplan.snapshot.rewriting import Rewriting, Rule, as_it_is, structs_in

KEPT: Final = frozenset(
    {
        # One of a few words.
        *("access_modes", "action", "bind_mount_options", "bind_completed", "bound_by_controller", "completion_mode"),
        *("declared_features", "effect", "migrated_plugins", "node_affinity_policy", "node_taints_policy", "operator"),
        *("phase", "preemption_policy", "protocol", "reason", "restart_policy", "status", "type"),
        *("volume_binding_mode", "volume_mode", "when_unsatisfiable"),
        # Times, versions and numbers.
        *("completed_indexes", "creation_timestamp", "deletion_timestamp", "max_surge", "resource_version"),
        "start_time",
        # Amounts, by names of resources that configurations know.
        *("allocatable", "allocated_resources", "capacity", "limits", "maximum_volume_size", "overhead", "requests"),
        *("default", "default_request", "max", "min", "min_resources", "pod_fixed"),
        "extended_resource_name",
        # What configurations call their profiles.
        "scheduler_name",
        # Drawn at random by the API server. Where the search for victims begins depends on it.
        "uid",
    }
)
"""Fields whose text stays; all text that is not among them, in whatever field, is replaced."""
_COMPARING: Final = frozenset({"Gt", "Lt"})
_KINDS: Final = frozenset({*(kind for _, kind in WORKLOADS), "Node", "Pod", "PersistentVolumeClaim"})
"""Kinds of owners that simulations know."""
_NAME_FIELD: Final = "metadata.name"
_UNKNOWN_VERSION: Final = "redacted/v1"
_DEFAULT_POOL: Final = "rbd"
_SOURCES: Final = ("aws_elastic_block_store", "azure_disk", "cinder", "gce_persistent_disk", "portworx_volume", "rbd")
"""The fields of volumes' sources that say more than text."""


class Redaction:
    """Makes the objects of one snapshot anew, with keyed hashes for all that could tell whose they are.

    What stays is amounts and names of resources, priorities, times, UIDs, scheduler names, Kubernetes' own label keys,
    in-tree plugins and their CSI drivers, namespaces and classes that every cluster has, label values that are compared
    as numbers, and the labels in `kept_labels`, which a configuration may name. `key` is secret: without it nobody can
    try names out.
    """

    def __init__(self, objects: Sequence[Any], key: bytes, kept_labels: Collection[str] = ()) -> None:
        self._hashes = hashes = Hashes(key, numbers=_number_keys(objects), kept=kept_labels)
        self._names = MadeNames(objects, hashes)
        self._namespace = ""
        whole: dict[type, Rule] = {
            OwnerReference: self._owner,
            ObjectReference: self._claim_of_volume,
            Taint: hashes.keyed,
            Toleration: hashes.keyed,
            **dict.fromkeys(
                (NodeSelectorRequirement, LabelSelectorRequirement, TopologySelectorLabelRequirement),
                self._requirement,
            ),
        }
        self._anew = Rewriting(self._of_types(), hashes.name, named=self._of_names(), whole=whole)

    def __call__(self, obj: Any) -> Any:  # noqa: ANN401 - an object of any kind
        """The object anew."""
        self._namespace = obj.metadata.namespace
        anew = self._anew(obj)
        name = self._name(obj)
        return anew if name is None else structs.replace(anew, metadata=structs.replace(anew.metadata, name=name))

    def _name(self, obj: Any) -> str | None:  # noqa: ANN401 - see __call__
        """What the object is called, where that is not the plain hash of its name."""
        name = obj.metadata.name
        if isinstance(obj, Pod):
            return self._names.pod(self._namespace, name)
        if isinstance(obj, PersistentVolumeClaim):
            return self._names.claim(self._namespace, name)
        if isinstance(obj, PodGroup) and obj.spec.scheduling_policy is None:
            # Pods name those of the CRD by a label.
            return self._hashes.label_value(POD_GROUP_LABEL, name)
        return self._hashes.driver(name) if isinstance(obj, CSIDriver) else None

    def _of_names(self) -> dict[str, Rule]:
        """The rules for fields of a name, in whatever type they are."""
        hashes, names = self._hashes, self._names
        return {
            **dict.fromkeys(_SOURCES, self._source),
            **dict.fromkeys(KEPT, self._kept),
            **dict.fromkeys(("labels", "match_labels", "node_selector"), hashes.labels),
            **dict.fromkeys(("key", "topology_key"), hashes.label_key),
            **dict.fromkeys(("match_label_keys", "mismatch_label_keys"), self._label_keys),
            **dict.fromkeys(("driver", "attacher", "provisioner"), hashes.driver),
            "claim_name": lambda name: names.claim(self._namespace, name),
            "disrupted_pods": lambda pods: {names.pod(self._namespace, name): time for name, time in pods.items()},
            "host_ip": lambda address: address if address == ANY_IP else hashes.name(address),
            "match_fields": self._fields,
            "names": lambda names: [hashes.image(each) for each in names],
            "reference": hashes.wanted_image,
            "volume_handle": hashes.disk,
            "selector": lambda held: hashes.labels(held) if isinstance(held, dict) else self._anew(held),
        }

    def _of_types(self) -> dict[tuple[type, str], Rule]:
        hashes = self._hashes
        return {
            (Container, "image"): hashes.wanted_image,
            (CSINodeDriver, "name"): hashes.driver,
            (Volume, "csi"): self._source,
        }

    def _kept(self, value: Any) -> Any:  # noqa: ANN401 - see Rule
        """Keep text and amounts; a struct in a field of such a name is gone through."""
        return self._anew(value) if isinstance(value, Struct) else value

    def _label_keys(self, keys: Sequence[str]) -> list[str]:
        return [self._hashes.label_key(key) for key in keys]

    def _requirement(self, requirement: Any) -> Any:  # noqa: ANN401 - one of several types with key and values
        key, values = requirement.key, requirement.values
        hashed = None if values is None else [self._hashes.label_value(key, each) for each in values]
        return structs.replace(requirement, key=self._hashes.label_key(key), values=hashed)

    def _fields(self, requirements: Sequence[NodeSelectorRequirement]) -> list[NodeSelectorRequirement]:
        """The one field that there is, metadata.name, has names of nodes for values."""
        name = self._hashes.name
        return [
            structs.replace(
                each,
                key=each.key if each.key == _NAME_FIELD else name(each.key),
                values=each.values and [name(value) for value in each.values],
            )
            for each in requirements
        ]

    def _owner(self, owner: OwnerReference) -> OwnerReference:
        is_known = owner.kind in _KINDS
        name = self._names.pod(self._namespace, owner.name) if owner.kind == "Pod" else self._hashes.name(owner.name)
        return structs.replace(
            owner,
            api_version=owner.api_version if is_known else _UNKNOWN_VERSION,
            kind=owner.kind if is_known else self._hashes.text(owner.kind),
            name=name,
        )

    def _claim_of_volume(self, claim: ObjectReference) -> ObjectReference:
        return structs.replace(
            claim,
            namespace=self._hashes.name(claim.namespace),
            name=self._names.claim(claim.namespace, claim.name),
        )

    def _source(self, source: Mapping[str, Any]) -> dict[str, Any]:
        """The source of a volume: what has no rule of its own is text like any other."""
        hashes = self._hashes
        rules: dict[str, Rule] = {
            **dict.fromkeys(("diskURI", "pdName", "volumeID"), hashes.disk),
            "driver": hashes.driver,
            "kind": as_it_is,
            "pool": lambda pool: pool if pool == _DEFAULT_POOL else hashes.name(pool),
        }
        return {
            key: rules.get(key, self._anew)(value) if isinstance(value, str | list) else value
            for key, value in source.items()
        }


def _number_keys(objects: Sequence[Any]) -> set[str]:
    """The keys of labels and taints whose values some object compares as integers."""
    return {
        each.key
        for obj in objects
        for each in structs_in(obj)
        if isinstance(each, NodeSelectorRequirement | Toleration) and each.operator in _COMPARING
    }


def redacted(trace: Trace, key: bytes) -> Trace:
    """Return the trace with keyed hashes for keys and values of labels and taints, and numbers for names of pools.

    `bayplan trace record --redact` relies on it. What is equal stays equal, and what is compared as a number stays, so
    every pod fits where it did. Amounts and names of resources stay, as in a redacted snapshot. `key` is secret.
    """
    header = trace.header
    compared = {each.key for some in header.templates for each in some.tolerations if each.operator in _COMPARING}
    hashes = Hashes(key, numbers=compared)

    pools = [
        structs.replace(
            pool, name=f"pool-{number}", labels=hashes.labels(pool.labels), taints=[*map(hashes.keyed, pool.taints)]
        )
        for number, pool in enumerate(header.pools, 1)
    ]
    templates = [
        structs.replace(
            each,
            node_selector=hashes.labels(each.node_selector),
            tolerations=[*map(hashes.keyed, each.tolerations)],
        )
        for each in header.templates
    ]
    return trace_of(structs.replace(header, pools=pools, templates=templates), [*trace.pods])
