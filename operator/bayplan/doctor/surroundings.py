"""What around the scheduler works against packing: autoscalers, the descheduler, and rights that are missing."""

import shlex
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np

from bayplan.cache.resources import CPU
from bayplan.config.bayplan_args import DefaultPreemptionArgs, PDBPolicy
from bayplan.config.types import SchedulerConfiguration
from bayplan.doctor.finding import Finding, Patient
from bayplan.shown_text import counted

KINDS: Final = frozenset({"NodePool", "DeschedulerPolicy", "Node", "Pod"})
"""What is read of the files besides what simulations read: of nodes and pods their annotations."""
_KEPT: Final[Mapping[str, tuple[str, str]]] = {
    "Node": ("cluster-autoscaler.kubernetes.io/scale-down-disabled", "true"),
    "Pod": ("cluster-autoscaler.kubernetes.io/safe-to-evict", "false"),
}
_UNDERUSED: Final = "WhenEmptyOrUnderutilized"
"""Karpenter's default."""
_WHEN_EMPTY: Final = """kubectl patch nodepool {name} --type merge -p \\
  '{{"spec": {{"disruption": {{"consolidationPolicy": "WhenEmpty", "consolidateAfter": "1m"}}}}}}'"""
_LOW: Final = "LowNodeUtilization"
_HIGH: Final = """profiles:
- name: packing
  pluginConfig:
  - name: HighNodeUtilization
    args: {thresholds: {cpu: 20, memory: 20}}
  plugins: {balance: {enabled: [HighNodeUtilization]}}"""


def consolidation(patient: Patient) -> Iterator[Finding]:
    """NodePools of Karpenter that evict pods to consolidate them, beside a scheduler that packs."""
    for name, pool in _named(patient, "NodePool"):
        if (_at(pool, "spec", "disruption", "consolidationPolicy") or _UNDERUSED) == _UNDERUSED:
            evicted = f"{counted(len(patient.running), 'pod')} on {counted(patient.used, 'node')} may be evicted"
            message = "Karpenter evicts pods from nodes with room, and the scheduler places them again"
            yield Finding(
                "consolidation",
                f"NodePool {name}",
                message,
                f"{evicted}; {patient.needed}",
                _WHEN_EMPTY.format(name=shlex.quote(name)),
            )


def kept_nodes(patient: Patient) -> Iterator[Finding]:
    """Annotations that keep cluster-autoscaler from removing nodes that packing empties."""
    for kind, (key, value) in _KEPT.items():
        names = {name for name, each in _named(patient, kind) if _at(each, "metadata", "annotations", key) == value}
        hosts = {pod.pod.spec.node_name for pod in patient.running if {pod.key, pod.pod.spec.node_name} & names}
        if hosts:
            effect = f"{counted(len(hosts), 'node')} of {patient.used} in use cannot be removed; {patient.needed}"
            fix = f"kubectl annotate {kind.lower()} {shlex.quote(min(names).rpartition('/')[2])} {key}-"
            yield Finding("kept-nodes", counted(len(names), kind.lower()), f"{key} is {value}", effect, fix)


def descheduling(patient: Patient) -> Iterator[Finding]:
    """A descheduler's LowNodeUtilization, which evicts from full nodes what packing put there."""
    for name, policy in _named(patient, "DeschedulerPolicy"):
        for profile in _listed(policy, "profiles"):
            if _LOW not in _listed(profile, "plugins", "balance", "enabled"):
                continue
            given = [_at(each, "args") for each in _listed(profile, "pluginConfig") if _at(each, "name") == _LOW]
            limit = _at(next(iter(given), None), "targetThresholds", CPU)
            limit = limit if isinstance(limit, int | float) and 0 <= limit <= 100 else 100
            nodes = patient.as_it_is.simulator.cache.nodes
            above = int((nodes.taken(CPU) / np.maximum(nodes.offered(CPU), 1) > limit / 100).sum())
            effect = f"{patient.needed}, of which {above} are above its {limit} % of cpu, and lose pods"
            message = f"{_LOW} evicts pods from full nodes, and the scheduler packs them again"
            yield Finding("descheduling", f"DeschedulerPolicy {name}".rstrip(), message, effect, _HIGH)


def _named(patient: Patient, kind: str) -> Iterator[tuple[str, Any]]:
    for each, value in patient.others:
        if each == kind:
            name, namespace = _at(value, "metadata", "name") or "", _at(value, "metadata", "namespace") or "default"
            yield (f"{namespace}/{name}" if kind == "Pod" else str(name)), value


def _at(value: Any, *path: str) -> Any:  # noqa: ANN401 - values of files are anything
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _listed(value: Any, *path: str) -> list[Any]:  # noqa: ANN401 - as above
    found = _at(value, *path)
    return found if isinstance(found, list) else []


PATH: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
Ask = Callable[[bytes], Awaitable[bytes]]
"""Sends a SelfSubjectAccessReview, and returns what the API server makes of it."""

_Right = tuple[str, str, str, str]
"""Verb, resource with its group, the manifest that grants it, and what is not done without it."""
_ALWAYS: Final[Sequence[_Right]] = (
    ("create", "pods/binding", "base", "no pod is bound"),
    ("patch", "pods/status", "base", "autoscalers do not hear of pods that fit nowhere"),
    ("watch", "pods", "base", "no pod is seen"),
    ("watch", "nodes", "base", "no node is seen"),
)
_DELETE: Final = ("delete", "pods", "components/preemption", "preemption ends no victim")
_EVICT: Final = ("create", "pods/eviction", "components/careful-preemption", "preemption ends no victim")
_VOLUMES: Final = ("patch", "persistentvolumes", "components/volumes", "pods wait whose volumes are not bound yet")
_CLAIMS: Final = "resourceclaims.resource.k8s.io"
_BY: Final = "components/devices"
_DEVICES: Final[Sequence[_Right]] = (
    ("patch", f"{_CLAIMS}/binding", _BY, "no pod gets devices by resource claims"),
    ("update", _CLAIMS, _BY, "no pod gets devices by claims whose opaque parameters have white space"),
    ("create", _CLAIMS, _BY, "no pod gets devices for extended resources of a DeviceClass"),
    ("delete", _CLAIMS, _BY, "claims for extended resources keep their devices where the bind failed"),
)


class _Status(msgspec.Struct, frozen=True):
    allowed: bool = False


class _Review(msgspec.Struct):
    status: _Status = _Status()


async def missing_rights(configuration: SchedulerConfiguration, ask: Ask) -> list[Finding]:
    """Return a finding for each right that is missing; raises what `ask` raises, and a DecodeError for no review."""
    found = []
    for verb, name, granted_by, effect in (*_ALWAYS, *_by_plugin(configuration)):
        kind, _, subresource = name.partition("/")
        resource, _, group = kind.partition(".")
        asked = {"verb": verb, "group": group, "resource": resource, "subresource": subresource}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": asked},
        }
        answer = msgspec.json.decode(await ask(msgspec.json.encode(review)), type=_Review)
        if not answer.status.allowed:
            fix = f"kubectl apply -k manifests/{granted_by}"
            found.append(Finding("rights", f"{verb} {name}", "the right is missing", effect, fix))
    return found


def _by_plugin(configuration: SchedulerConfiguration) -> Iterator[_Right]:
    enabled = {entry.name for profile in configuration.profiles for entry in profile.plugins.multi_point.enabled}
    if "DefaultPreemption" in enabled:
        args = [profile.plugin_config.get("DefaultPreemption") for profile in configuration.profiles]
        strict = any(isinstance(each, DefaultPreemptionArgs) and each.pdb_policy is PDBPolicy.STRICT for each in args)
        yield _EVICT if strict else _DELETE
    if "VolumeBinding" in enabled:
        yield _VOLUMES
    if "DynamicResources" in enabled:
        yield from _DEVICES
