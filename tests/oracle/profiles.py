"""The parts of the configurations that kube-scheduler records under."""

from typing import Any

from tests.oracle.case import Object

SCHEDULER = "oracle"
OTHER_SCHEDULER = "oracle-other"

GPU = "example.com/gpu"
FPGA = "vendor.io/fpga"


def document(*profiles: Object, **fields: object) -> Object:
    """A configuration of these profiles that is kube-scheduler's own in all the `fields` do not say.

    Nodes are filtered one after the other, so that the order is told by the configuration and not by chance.
    """
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "parallelism": 1,
        **fields,
        "profiles": list(profiles),
    }


def profile(
    name: str = SCHEDULER, plugins: Object | None = None, *, percentage: int | None = None, **args: Object
) -> Object:
    """A profile with changed plugin sets, a percentageOfNodesToScore, and arguments by plugin, if given."""
    found: Object = {
        "schedulerName": name,
        "plugins": plugins or {},
        "pluginConfig": [{"name": plugin, "args": given} for plugin, given in args.items()],
    }
    return found if percentage is None else {**found, "percentageOfNodesToScore": percentage}


def without(point: str, *plugins: str) -> Object:
    """A plugin set with these plugins, or "*", switched off at one extension point."""
    return {point: {"disabled": [{"name": plugin} for plugin in plugins]}}


def strategy(kind: str, shape: list[tuple[int, int]] | None = None, **weights: int) -> Object:
    """NodeResourcesFit's arguments for a scoring strategy with these weights of resources."""
    names = {"gpu": GPU, "fpga": FPGA, "storage": "ephemeral-storage", "huge": "hugepages-2Mi"}
    found: Object = {
        "type": kind,
        "resources": [{"name": names.get(name, name), "weight": weight} for name, weight in weights.items()],
    }
    if shape is not None:
        points = [{"utilization": utilization, "score": score} for utilization, score in shape]
        found["requestedToCapacityRatio"] = {"shape": points}
    return {"scoringStrategy": found}


def enabled(*entries: str | tuple[str, int]) -> list[dict[str, Any]]:
    """The plugins of a plugin set, some with their weights."""
    return [{"name": each} if isinstance(each, str) else {"name": each[0], "weight": each[1]} for each in entries]
