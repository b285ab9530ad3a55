"""What must hold once all faults are over and all is quiet. The names P7, ... are those of docs/faults.md."""

import json
from collections import Counter
from collections.abc import Iterator

import msgspec
from tests.faults.api_server import Object
from tests.faults.history import FINISHED, is_overfull, node_of, priority_of, takes_room_on
from tests.faults.memory_api import EVENTS, NODES, PODS, MemoryApi
from tests.faults.scheduler_life import SchedulerLife
from tests.faults.volume_controller import has_volume_on
from tests.queue_checks import assert_consistent
from tests.scheduler.debugger.dumps import compare, held

from bayplan.api.kinds import RESOURCES
from bayplan.api.objects import Node, Pod
from bayplan.scheduler.cache_comparison import ListedDump


def broken(api: MemoryApi, life: SchedulerLife) -> Iterator[str]:
    """Every promise that is broken, in words."""
    yield from p7_nothing_lost(api)
    yield from p22_p25_itself(api, life)


def p22_p25_itself(api: MemoryApi, life: SchedulerLife) -> Iterator[str]:
    """What it knows is the truth, and all its parts run."""
    yield from p22_cache_is_truth(api, life)
    if life.failed is not None:
        yield f"P25 a part ended: {life.failed!r}"


def p7_nothing_lost(api: MemoryApi) -> Iterator[str]:
    """A pod that waits fits on no node, not even with all pods of lower priority gone that it may end."""
    pods = _pods(api)
    for pod in filter(_is_to_be_placed, pods):
        for node in api.objects.get(NODES, {}).values():
            name = node["metadata"]["name"]
            if not _admits(node, pod) or not has_volume_on(api, pod, node):
                continue
            there = [each for each in pods if takes_room_on(each, name) or _keeps_room_on(each, name, pod)]
            stay = [each for each in there if priority_of(each) >= priority_of(pod)]
            if not is_overfull(node, [*there, pod]):
                yield f"P7 {pod['metadata']['name']} waits though it fits on {name}"
            elif pod["spec"].get("preemptionPolicy") != "Never" and not is_overfull(node, [*stay, pod]):
                yield f"P7 {pod['metadata']['name']} waits though preemption makes room on {name}"


def p17_nominations(api: MemoryApi) -> Iterator[str]:
    """A pod of ours that is nominated is one that is about to be bound, and all are bound by now."""
    for pod in _pods(api):
        node = pod["status"].get("nominatedNodeName")
        if node and pod["spec"].get("schedulerName") == "bayplan":
            yield f"P17 {pod['metadata']['name']} is still nominated to {node}"


def p19_quiet(api: MemoryApi, before: int) -> Iterator[str]:
    """Nothing is written where nothing changes, but for what a pod is told that is looked at after five minutes."""
    told: Counter[tuple[str, str]] = Counter()
    for write in api.writes[before:]:
        about = (write.method, write.body.get("regarding", {}).get("uid") or write.target.key)
        told[about] += 1
        looked_at = write.method == "PATCH" or write.target.collection == EVENTS
        if not looked_at or told[about] > 1:
            yield f"P19 {write.method} {write.target.collection} {write.target.key} {json.dumps(write.body)[:200]}"


def p17_p21_status(api: MemoryApi) -> Iterator[str]:
    """What is written on pods is true once each that waits was tried again: what was given up is made up for."""
    yield from p17_nominations(api)
    yield from p21_honest_status(api)


def p21_honest_status(api: MemoryApi) -> Iterator[str]:
    """A pod that waits says so, and a pod that has a node does not say that it waits."""
    for pod in _pods(api):
        found = next((c for c in pod["status"].get("conditions", ()) if c["type"] == "PodScheduled"), None)
        name = pod["metadata"]["name"]
        if _is_to_be_placed(pod) and (found is None or found["status"] != "False"):
            yield f"P21 {name} waits and does not say so: {found}"
        if node_of(pod) and found is not None and found["status"] != "True":
            yield f"P21 {name} has a node and says that it waits: {found.get('message')}"


def p22_cache_is_truth(api: MemoryApi, life: SchedulerLife) -> Iterator[str]:
    """Cache, queue, nominations and listers equal what the API server has."""
    scheduler = life.parts.scheduler
    listed = ListedDump({"bayplan"})
    for pod in _pods(api):
        listed.add_pod(msgspec.convert(pod, Pod))
    for node in api.objects.get(NODES, {}).values():
        listed.add_node(msgspec.convert(node, Node))
    wanted = set(scheduler.cache.listers.wanted())
    for resource in RESOURCES:
        for obj in api.objects.get(resource.path, {}).values() if resource.type in wanted else ():
            listed.add(resource.plural, msgspec.convert(obj, resource.type))
    for each in compare(held(scheduler.cache, scheduler.queue), listed):
        yield f"P22 {each.kind} {each.key}: held {each.held}, in the API server {each.listed}"
    assert_consistent(scheduler.queue)


def _pods(api: MemoryApi) -> list[Object]:
    return list(api.objects.get(PODS, {}).values())


def _is_to_be_placed(pod: Object) -> bool:
    return (
        pod["spec"].get("schedulerName") == "bayplan"
        and not node_of(pod)
        and not pod["metadata"].get("deletionTimestamp")
        and not pod["spec"].get("schedulingGates")
        and pod["status"].get("phase") not in FINISHED
    )


def _keeps_room_on(other: Object, node: str, pod: Object) -> bool:
    """Whether another pod has room kept on the node by a nomination that this pod must heed."""
    return (
        other is not pod
        and not node_of(other)
        and other["status"].get("nominatedNodeName") == node
        and priority_of(other) >= priority_of(pod)
    )


def _admits(node: Object, pod: Object) -> bool:
    spec = node["spec"]
    if (spec.get("taints") or spec.get("unschedulable")) and not pod["spec"].get("tolerations"):
        return False
    wanted = pod["spec"].get("nodeSelector") or {}
    return bool(wanted.items() <= node["metadata"]["labels"].items())
