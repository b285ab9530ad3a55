"""Policies of old decide as Kubernetes 1.16 did, within what its whole numbers from 0 to 10 round away."""

from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import make_node, make_pod
from tests.config.configurations import load
from tests.config.policies_1_16 import (
    BAR,
    DOCUMENTED,
    FOO,
    LATER_SAMPLE,
    RESOURCES,
    SAMPLE,
    SAMPLE_WITH_EXTENDER,
    SHAPE,
)
from tests.reference import kubernetes_1_16 as reference
from tests.reference.filters import Host
from tests.simulate.explained import run_explained

from bayplan.cache.pod_info import PodInfo
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.simulator import Simulator

LEAST = (1, reference.least_requested, reference.REQUESTED_ROUNDING)
MOST = (1, reference.most_requested, reference.REQUESTED_ROUNDING)
BALANCED = (1, reference.balanced_allocation, reference.BALANCED_ROUNDING)
RATIO = (2, reference.requested_to_capacity_ratio(SHAPE, RESOURCES), reference.RATIO_ROUNDING)

# What of each policy is not the same on all nodes, for pods that no Service selects and that ask for nothing special.
POLICIES = {
    "sample": (SAMPLE, [LEAST, BALANCED]),
    "sample with an extender": (SAMPLE_WITH_EXTENDER, [LEAST, BALANCED]),
    "later sample": (LATER_SAMPLE, [MOST, LEAST, BALANCED]),
    "documented": (DOCUMENTED, [LEAST, BALANCED, RATIO]),
}
BY_RESOURCES = {"NodeResourcesFit", "NodeResourcesBalancedAllocation"}
_DEVICES = 10  # More would let one device be less than a point of ten.


@st.composite
def clusters(draw):
    """Two to five nodes, each with one pod that leaves room for the pending one, some none beyond it."""
    wanted = {"cpu": draw(st.integers(100, 3000)), "memory": draw(st.integers(100, 3000)), FOO: 1, BAR: 1}
    nodes, pods = [], []
    for number in range(draw(st.integers(2, 5))):
        has = {name: draw(st.integers(3100, 16000)) for name in ("cpu", "memory")}
        has |= {name: draw(st.integers(2, _DEVICES)) for name in (FOO, BAR)}
        takes = {name: draw(st.integers(1, amount - wanted[name])) for name, amount in has.items()}
        nodes.append(make_node(f"n{number}", **units(has)))
        pods.append(make_pod(f"on-{number}", node=f"n{number}", requests=units(takes)["allocatable"]))
    return nodes, pods, make_pod("pending", requests=units(wanted)["allocatable"])


def units(amounts):
    shown = {"cpu": f"{amounts['cpu']}m", "memory": f"{amounts['memory']}Mi"}
    return {"allocatable": {**{name: str(amount) for name, amount in amounts.items()}, **shown}}


@pytest.mark.parametrize("policy", POLICIES)
@given(cluster=clusters())
@settings(max_examples=60, deadline=None)
def test_a_policy_decides_as_1_16_did_within_its_rounding(policy, cluster):
    content, priorities = POLICIES[policy]
    nodes, placed, pending = cluster
    with TemporaryDirectory() as directory:
        simulator = Simulator(load(Path(directory), content))
    simulator.add(ClusterObjects(nodes=nodes, pods=[PodInfo(pod) for pod in (*placed, pending)]))
    (attempt,) = run_explained(simulator).pods[0].attempts
    fitting = {name: verdict for name, verdict in attempt.nodes.items() if verdict.rejected_by is None}
    assert len(fitting) == len(nodes)
    others = [{n: score for n, score in each.scores.items() if n not in BY_RESOURCES} for each in fitting.values()]
    assert others == [others[0]] * len(others)
    hosts = {node.metadata.name: Host(node, (PodInfo(pod),)) for node, pod in zip(nodes, placed, strict=True)}
    then = {
        name: sum(weight * points(PodInfo(pending), hosts[name]) for weight, points, _ in priorities)
        for name in fitting
    }
    below, above = (sum(weight * rounding[side] for weight, _, rounding in priorities) for side in (0, 1))
    for name, verdict in fitting.items():
        now = Fraction(sum(verdict.scores.get(plugin, 0) for plugin in BY_RESOURCES), 10)
        assert below < then[name] - now < above
    # The node chosen today has at least the best node's score of today, so in 1.16 it lay at most this far behind.
    assert max(then.values()) - then[attempt.node] < above - below


def test_the_documents_scores_of_ten_are_the_reference_of_1_16():
    running = {"node-1": {"cpu": 1, "memory": "256Mi", FOO: 1}, "node-2": {"cpu": 6, "memory": "512Mi", FOO: 2}}
    pending = PodInfo(make_pod(requests={"cpu": 2, "memory": "256Mi", FOO: 2}))
    points = reference.requested_to_capacity_ratio(SHAPE, {FOO: 5, "cpu": 3, "memory": 1})
    hosts = [
        Host(make_node(name, cpu=8, memory="1Gi", allocatable={FOO: foo}), (PodInfo(make_pod(requests=running[name])),))
        for name, foo in (("node-1", 4), ("node-2", 8))
    ]
    assert [points(pending, host) for host in hosts] == [5, 7]
