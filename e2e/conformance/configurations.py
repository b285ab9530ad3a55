"""The configurations whose scheduler takes the suite's pods: those that name no scheduler."""

from typing import Any

DEFAULT, MOST_ALLOCATED = "default", "most-allocated"

_RESOURCES = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]
_PACKING = {"scoringStrategy": {"type": "MostAllocated", "resources": _RESOURCES}}
_PROFILES: dict[str, dict[str, Any]] = {
    DEFAULT: {},
    MOST_ALLOCATED: {"pluginConfig": [{"name": "NodeResourcesFit", "args": _PACKING}]},
}
CONFIGURATIONS = tuple(_PROFILES)
"""kube-scheduler's default plugins as they are, and packing in the place of spreading by resources."""


def scheduler_configuration(name: str) -> dict[str, Any]:
    """Returns a KubeSchedulerConfiguration, of one of CONFIGURATIONS, that claims the pods of `default-scheduler`.

    As in a cluster, the scheduler holds a lease while it is at work.
    """
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": True},
        "profiles": [{"schedulerName": "default-scheduler", **_PROFILES[name]}],
    }
