"""Small clusters that plans are asked of, and plans carried out step by step by another simulation."""

from tests.builders import make_node, make_pod_info

from bayplan.api.meta_objects import ObjectMeta
from bayplan.api.objects import LabelSelector
from bayplan.api.workload_objects import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from bayplan.cache.pod_info import PodInfo
from bayplan.config.load import default_configuration
from bayplan.plan.rehearsal import Rehearsal
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.drain import cordoned, waiting_anew
from bayplan.simulate.simulator import Simulator


def running(name, node, cpu=1, *, owner="ReplicaSet/web", phase="Running", **fields):
    """A pod on a node, of a controller unless `owner` is empty."""
    owners = {"owner": owner} if owner else {}
    return make_pod_info(name, node=node, cpu=cpu, uid=name, phase=phase, **owners, **fields)


def waiting(name, cpu=1, **fields):
    """A pod that waits for a node."""
    return make_pod_info(name, cpu=cpu, uid=name, **fields)


def nodes(*names, cpu=4):
    """Nodes of one size."""
    return [make_node(name, cpu=cpu, pods=110) for name in names]


def budget(name, allowed, **labels):
    """What protects the pods of these labels, and how many disruptions it allows now."""
    return PodDisruptionBudget(
        ObjectMeta(name=name, namespace="default"),
        PodDisruptionBudgetSpec(LabelSelector(match_labels=labels)),
        PodDisruptionBudgetStatus(disruptions_allowed=allowed),
    )


def rehearsal(nodes, pods, *, budgets=(), groups=(), configuration=None):
    """What a plan is asked of."""
    simulator = Simulator(configuration or default_configuration())
    objects = ClusterObjects(nodes=nodes, pods=pods, looked_up=[*budgets], pod_groups=[*groups])
    return Rehearsal(simulator, objects)


def steps(plan):
    """Pod, node it leaves, and node it lands on, of each move."""
    return [(move.name, move.source, move.to) for move in plan.moves]


def reasons(plan):
    """What is in the way, by pod."""
    return {each.name: each.reason for each in plan.obstacles}


def carried_out(nodes, pods, plan):
    """Where every pod of the plan lands in a simulation of its own that is led through the plan."""
    simulator = Simulator(default_configuration())
    own = {pod.uid: PodInfo(pod.pod) for pod in pods}
    simulator.add(ClusterObjects(nodes=nodes, pods=list(own.values())))
    simulator.run()
    by_name = {node.metadata.name: node for node in nodes}
    for name in plan.cordon:
        simulator.update_node(cordoned(by_name[name]))
    for move in plan.moves:
        simulator.depart(move.uid)
        simulator.add(ClusterObjects(pods=[PodInfo(waiting_anew(own[move.uid].pod))]))
        simulator.run()
    for name in plan.uncordon:
        simulator.update_node(by_name[name])
    simulator.run()
    return simulator
