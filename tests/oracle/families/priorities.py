"""Priorities and start times, so that pods of any scene may be preempted."""

from datetime import UTC, datetime, timedelta

from tests.oracle.case import Object, Scene
from tests.oracle.dice import Dice
from tests.oracle.families import parts

_START = datetime(2026, 1, 1, tzinfo=UTC)


def prioritise(dice: Dice, scene: Scene) -> None:
    """Gives placed pods low priorities and start times, and lets some of those that come preempt them.

    There is one more pod on each node, and some of those that come want nearly a whole one.

    No two start at the same time, as kube-scheduler takes any of several equal ones. Placed pods share no host port
    on a node and no claim that one pod at a time may use: no scheduler would have placed them so.
    """
    scene.placed += [_filler(dice, index, node) for index, node in enumerate(scene.nodes)]
    low = dice.some((-10, 0, 0, 5, 10), 1, 3)
    for each, start in zip(scene.placed, dice.sample(range(100_000), len(scene.placed)), strict=True):
        each["spec"]["priority"] = dice.choice(low)
        each["status"] = {"phase": "Running", **each.get("status", {}), "startTime": time(start)}
    for each in scene.incoming:
        each["spec"]["priority"] = dice.choice((0, 3, 7, 1000, 1000))
        if each["spec"]["priority"] == 1000 and dice.maybe(0.4):
            each["spec"]["containers"][0]["resources"] = {"requests": {"cpu": dice.choice(("3700m", "7700m"))}}
            # The API server refuses a pod whose own requests are below those of its containers.
            each["spec"].pop("resources", None)
        if dice.maybe(0.05):
            each["spec"]["preemptionPolicy"] = "Never"
    one_pod_a_claim(scene)
    _one_pod_a_port(scene)


def _filler(dice: Dice, index: int, node: Object) -> Object:
    """A pod on a node that leaves less than all of its cpu."""
    each = parts.pod(dice, f"filler-{index}")
    each["spec"]["nodeName"] = node["metadata"]["name"]
    each["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "500m"}}
    return each


def time(minutes: int) -> str:
    """So many minutes after the first pods started."""
    return (_START + timedelta(minutes=minutes)).isoformat().replace("+00:00", "Z")


def one_pod_a_claim(scene: Scene) -> None:
    """Leaves claims that one pod may use at a time to the first placed one."""
    single = {
        (each["metadata"]["namespace"], each["metadata"]["name"])
        for each in scene.objects
        if each["kind"] == "PersistentVolumeClaim" and "ReadWriteOncePod" in each["spec"]["accessModes"]
    }
    taken: set[tuple[str, str | None]] = set()
    for pod in scene.placed:
        kept = []
        for volume in pod["spec"].get("volumes", []):
            claim = (pod["metadata"]["namespace"], volume.get("persistentVolumeClaim", {}).get("claimName"))
            if claim not in taken:
                kept.append(volume)
            taken |= {claim} & single
        if "volumes" in pod["spec"]:
            pod["spec"]["volumes"] = kept


def _one_pod_a_port(scene: Scene) -> None:
    """Leaves a host port of a node to the first placed pod there."""
    taken: set[tuple[str, int, str]] = set()
    for pod in scene.placed:
        for container in (*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])):
            kept: list[Object] = []
            for port in container.get("ports", []):
                number = port.get("hostPort", port["containerPort"])
                place = (pod["spec"]["nodeName"], number, port.get("protocol", "TCP"))
                if place not in taken:
                    kept.append(port)
                taken.add(place)
            if "ports" in container:
                container["ports"] = kept
