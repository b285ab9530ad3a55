"""What is said of an input that leaves little to simulate, and what to give instead."""

from collections import Counter
from collections.abc import Collection, Iterator

from bayplan.cache.cache import is_finished
from bayplan.cache.pod_info import PodInfo
from bayplan.simulate.cluster_objects import ClusterObjects


def waiting_pods(objects: ClusterObjects) -> Iterator[PodInfo]:
    """Yield the pods that wait for a node, whichever scheduler they name."""
    for info in objects.pods:
        if not info.pod.spec.node_name and not info.is_terminating and not is_finished(info.pod):
            yield info


def input_notes(objects: ClusterObjects, profiles: Collection[str], counted: PodInfo | None) -> Iterator[str]:
    """Yield a line for what keeps pods from being tried: no nodes, or a scheduler's name that is none of `profiles`."""
    waiting = Counter(info.pod.spec.scheduler_name for info in waiting_pods(objects))
    if not objects.nodes and (waiting or counted is not None):
        yield "no pod can be placed: the files hold no nodes, which `kubectl get nodes -o json` gives"
    if counted is None and waiting and not waiting.keys() & set(profiles):
        name, count = waiting.most_common(1)[0]
        pods = "1 pod that waits names" if count == 1 else f"{count} pods that wait name"
        yield f"no pod is tried: {pods} the scheduler {name}; to simulate it give --scheduler-name {name}"
        return
    evicted = sum((Counter(each.scheduler_names) for each in objects.drained), Counter[str]())
    for name, count in sorted(evicted.items()):
        if name not in profiles:
            pods = (
                "1 evicted pod is not placed: it names"
                if count == 1
                else f"{count} evicted pods are not placed: they name"
            )
            yield f"{pods} the scheduler {name}; to simulate it give --scheduler-name {name}"
