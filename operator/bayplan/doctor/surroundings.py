"""What other controllers are told that works against packing: autoscalers and the descheduler."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from bayplan.cache.resources import CPU
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
