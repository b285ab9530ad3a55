from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import make_node, make_pod_info
from tests.plugins.preemption.worlds import World, make_budget
from tests.reference.filters import Host
from tests.reference.preemption import choices, fits

from bayplan.cache.pod_info import PodInfo
from bayplan.evaluation.few_rows import FEW_ROWS
from bayplan.plugins.preemption import on_columns
from bayplan.scheduler.decision import FitError, Placement

NODES = ["n0", "n1", "n2", "n3"]
STARTS = [None, *(f"2026-01-01T00:00:0{second}Z" for second in range(4))]


@st.composite
def placed_pods(draw):
    return [
        make_pod_info(
            f"p{index}",
            uid=f"p{index}",
            node=draw(st.sampled_from(NODES)),
            cpu=draw(st.sampled_from([None, "0", "1", "2", "3", "9e18"])),
            priority=draw(st.sampled_from([None, -5, 1, 2, 10])),
            start_time=draw(st.sampled_from(STARTS)),
            labels=draw(st.sampled_from([None, {"a": "1"}, {"a": "1", "b": "1"}])),
            host_ports=draw(st.sampled_from([(), (), (80,)])),
            namespace=draw(st.sampled_from(["default", "default", "other"])),
        )
        for index in range(draw(st.integers(0, 12)))
    ]


@st.composite
def budgets(draw):
    return [
        make_budget(
            f"b{index}",
            allowed=draw(st.integers(0, 2)),
            disrupted=draw(st.sampled_from([(), ("p1", "p2")])),
            **draw(st.sampled_from([{}, {"a": "1"}, {"b": "1"}])),
        )
        for index in range(draw(st.integers(0, 3)))
    ]


def incoming(name="new"):
    return st.builds(
        lambda cpu, priority, ports: make_pod_info(name, uid=name, cpu=cpu, priority=priority, host_ports=ports),
        st.sampled_from(["1", "2", "3", "4", "5"]),
        st.sampled_from([0, 2, 3, 100]),
        st.sampled_from([(), (), (80,)]),
    )


nominations = st.lists(st.tuples(st.sampled_from(NODES), incoming("first")), max_size=2)


@settings(max_examples=120)
@given(
    placed_pods(),
    budgets(),
    st.lists(st.integers(1, 4), min_size=4, max_size=4),
    incoming(),
    nominations,
    st.sampled_from([0, FEW_ROWS]),
)
def test_node_and_victims_are_those_of_the_plain_reference(  # noqa: PLR0917  what hypothesis draws
    pods, pdbs, sizes, pod, nominated, few_rows
):
    nodes = [make_node(name, cpu=str(size), pods=4) for name, size in zip(NODES, sizes, strict=True)]
    world = World(*nodes, *(each.pod for each in pods), *pdbs)
    beside: dict[str, list[PodInfo]] = {}
    for index, (node, each) in enumerate(nominated):
        cpu = each.pod.spec.containers[0].resources.requests["cpu"]
        info = make_pod_info(uid=f"first{index}", cpu=cpu, priority=each.priority)
        world.nominator.add(info, node)
        beside.setdefault(node, []).append(info)
    hosts = [
        Host(node, tuple(each for each in pods if each.pod.spec.node_name == node.metadata.name)) for node in nodes
    ]
    with patch.object(on_columns, "FEW_ROWS", few_rows):
        outcome = world.schedule(pod)
    open_hosts = [
        host.name
        for host in hosts
        if fits(pod, host, [each for each in beside.get(host.name, ()) if each.priority >= pod.priority])
    ]
    if open_hosts:
        assert isinstance(outcome, Placement)
        assert outcome.node_name in open_hosts
        return
    assert isinstance(outcome, FitError)
    made, expected = outcome.post_filter, choices(pod, hosts, pdbs, beside)
    if not expected:
        assert (made.nominated_node_name, made.victims) == ("", ())
        return
    best = [choice for choice in expected if choice.rank == expected[0].rank]
    found = (made.nominated_node_name, [victim.name for victim in made.victims])
    assert sorted(candidate.node_name for candidate in made.candidates) == sorted(each.node for each in expected)
    nodes_of_best = {choice.node: choice.victims for choice in best}
    assert found[0] in nodes_of_best
    assert sorted(found[1]) == sorted(nodes_of_best[found[0]])
