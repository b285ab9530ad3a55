"""An autoscaler and its bill, one pod and one node at a time."""

from collections import deque
from heapq import heapify, heappop, heappush


def nodes_by_first_fit_decreasing(room, pods):
    """How many nodes of that room (cpu, memory) hold the pods, the largest first, each on the first that has room."""
    nodes = []
    for cpu, memory in sorted(pods, reverse=True):
        for node in nodes:
            if node[0] >= cpu and node[1] >= memory:
                break
        else:
            node = [*room]
            nodes.append(node)
        node[0] -= cpu
        node[1] -= memory
    return len(nodes)


def replayed_one_pod_a_node(pods, *, provision, end):
    """Seconds of nodes and of running pods, and how many ran, where a pod fills a node that goes once nobody wants it.

    `pods` are arrivals with durations. A node that is free, or new, takes one that waits.
    """
    departure, ready, arrival = range(3)
    events = [(at, arrival, duration) for at, duration in pods]
    heapify(events)
    waiting = deque()
    on_the_way = nodes = running = bound = 0
    node_seconds = pod_seconds = now = 0.0
    while events and events[0][0] <= end:
        at = events[0][0]
        node_seconds, pod_seconds, now = node_seconds + nodes * (at - now), pod_seconds + running * (at - now), at
        free = 0
        while events and events[0][0] == now:
            _, kind, duration = heappop(events)
            if kind == arrival:
                waiting.append(duration)
            else:
                free += 1
                running -= kind == departure
                on_the_way -= kind == ready
        for _ in range(min(free, len(waiting))):
            heappush(events, (now + waiting.popleft(), departure, 0.0))
            running, free, bound = running + 1, free - 1, bound + 1
        nodes -= free
        for _ in range(len(waiting) - on_the_way):
            on_the_way, nodes = on_the_way + 1, nodes + 1
            heappush(events, (now + provision, ready, 0.0))
    return node_seconds + nodes * (end - now), pod_seconds + running * (end - now), bound
