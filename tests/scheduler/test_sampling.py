from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import make_node, make_pod, make_pod_info, make_term
from tests.plugins.preemption.worlds import World
from tests.reference.sampling import ZONE, ReferenceSearch, ReferenceTree

from bayplan.cache.node_table import NodeTable
from bayplan.config.load import default_configuration
from bayplan.config.types import PluginEntry, PluginSet
from bayplan.explain.trace import trace_of
from bayplan.plugins.registry import build_frameworks
from bayplan.scheduler.attempt_log import runner_up
from bayplan.scheduler.cycle import SchedulingCycle
from bayplan.scheduler.decision import FitError
from bayplan.scheduler.sampling import nodes_to_find


@pytest.mark.parametrize(
    ("count", "percentage", "wanted"),
    [
        (0, 0, 0),
        (10, 0, 10),
        (99, 1, 99),
        (100, 0, 100),
        (100, 50, 100),
        (1000, 0, 420),
        (1000, 40, 400),
        (1000, 5, 100),
        (1000, 100, 1000),
        (1000, 150, 1000),
        (1000, None, 1000),
        (5000, 0, 500),
        (5000, 1, 100),
        (5625, 0, 281),
        (6000, 0, 300),
        (10_000, 0, 500),
    ],
)
def test_how_many_feasible_nodes_are_enough(count, percentage, wanted):
    assert nodes_to_find(count, percentage) == wanted


def configuration(percentage, *, profile_percentage=None, scores=True):
    """The default configuration with a global percentage, one of its profile, or without score plugins."""
    made = replace(default_configuration(), percentage_of_nodes_to_score=percentage)
    (profile,) = made.profiles
    plugins = profile.plugins
    if not scores:
        nothing = PluginSet(disabled=(PluginEntry("*"),))
        plugins = replace(plugins, score=nothing, pre_score=nothing)
    profile = replace(profile, percentage_of_nodes_to_score=profile_percentage, plugins=plugins)
    return replace(made, profiles=(profile,))


class Cluster(World):
    """Equal nodes of which a search looks at a percentage; node `n<i>` has the label third=i%3."""

    def __init__(self, nodes, percentage, **settings):
        labels = ({"name": f"n{i}", "third": str(i % 3)} for i in range(nodes))
        given = configuration(percentage, **settings)
        super().__init__(*(make_node(each["name"], labels=each) for each in labels), configuration=given)

    def choose(self, **fields):
        placement = self.schedule(make_pod(**fields))
        return placement.node_name, placement.feasible_nodes


def test_without_a_percentage_every_node_is_looked_at():
    assert Cluster(300, None).choose(cpu="1") == ("n0", 300)


@pytest.mark.parametrize(
    ("globally", "in_profile", "found"), [(40, None, 120), (40, 50, 150), (40, 100, 300), (0, None, 144), (100, 0, 144)]
)
def test_a_profiles_percentage_goes_before_the_global_one(globally, in_profile, found):
    assert Cluster(300, globally, profile_percentage=in_profile).choose() == ("n0", found)


def test_a_search_starts_where_the_last_one_ended():
    cluster = Cluster(250, 40)
    chosen = [cluster.choose(cpu="1") for _ in range(4)]
    # 100 of 250 nodes are enough: the searches begin at 0, 100, 200 and, past the end, 50.
    assert chosen == [("n0", 100), ("n100", 100), ("n200", 100), ("n50", 100)]


def test_a_search_ends_at_the_first_node_that_is_one_too_many():
    cluster = Cluster(400, 25)
    # Every third node fits: the hundredth is n297, and n298 and n299 are looked at before the next one is found.
    assert cluster.choose(node_selector={"third": "0"}) == ("n0", 100)
    assert cluster.choose() == ("n300", 100)


def test_a_search_that_finds_too_few_has_seen_every_node():
    cluster = Cluster(200, 50)
    assert cluster.choose() == ("n0", 100)
    # All of those that fit were found, so the best is the first of them in the table, as in a whole search.
    assert cluster.choose(node_selector={"third": "0"}) == ("n0", 67)
    # It went once around, so the next one starts at the same place.
    assert cluster.choose() == ("n100", 100)


def pinned_to(numbers, expression="third Exists"):
    return [make_term(expression, fields=[f"metadata.name In n{i}"]) for i in numbers]


def test_a_search_among_named_nodes_moves_the_start_by_how_many_it_saw():
    cluster = Cluster(300, 40)
    assert cluster.choose(node_affinity=pinned_to(range(150), "third In 0")) == ("n0", 50)
    assert cluster.choose() == ("n150", 120)


@pytest.mark.parametrize("fields", [{"cpu": "1"}, {"cpu": "100"}], ids=["fits", "fits nowhere"])
def test_a_pod_of_one_node_moves_the_start_by_one(fields):
    cluster = Cluster(300, 40)
    cluster.schedule(make_pod(node_affinity=pinned_to([7]), **fields))
    assert cluster.choose() == ("n1", 120)


def test_a_pod_that_a_pre_filter_rejects_moves_no_start():
    cluster = Cluster(300, 40)
    nowhere = [make_term(fields=["metadata.name In n1", "metadata.name In n2"])]
    assert isinstance(cluster.schedule(make_pod(node_affinity=nowhere)), FitError)
    assert cluster.choose() == ("n0", 120)


def test_small_clusters_are_always_searched_whole():
    cluster = Cluster(99, 1)
    assert [cluster.choose() for _ in range(2)] == [("n0", 99), ("n0", 99)]


def test_a_pod_that_fits_nowhere_is_told_of_all_nodes_and_moves_no_start():
    cluster = Cluster(200, 50)
    outcome = cluster.schedule(make_pod(cpu="100"))
    assert isinstance(outcome, FitError)
    assert outcome.message == (
        "0/200 nodes are available: 200 Insufficient cpu. "
        "preemption: 0/200 nodes are available: 200 Preemption is not helpful for scheduling."
    )
    assert cluster.choose() == ("n0", 100)


def test_what_a_sampled_search_finds_is_scored_among_itself():
    cluster = Cluster(200, 50)
    for row, taken in ((150, "3"), (30, "1")):
        cluster.add(make_pod(cpu=taken, memory="8Gi", node=f"n{row}", uid=f"u{row}"))
    # n150 is the fullest of all, n30 the fullest of the hundred that were found.
    assert cluster.choose(cpu="1", memory="1Gi")[0] == "n30"
    assert cluster.choose(cpu="1", memory="1Gi")[0] == "n150"


def test_a_pod_that_fits_its_nominated_node_moves_no_start():
    cluster = Cluster(200, 50)
    assert cluster.choose(nominated="n150") == ("n150", 1)
    assert cluster.choose() == ("n0", 100)


@pytest.mark.parametrize(("nominated", "next_one"), [("n301", "n301"), ("n1", "n300")], ids=["besides", "once"])
def test_a_nominated_node_that_does_not_fit_counts_as_looked_at(nominated, next_one):
    cluster = Cluster(400, 25)
    # The search itself looks at n0 to n299.
    assert cluster.choose(node_selector={"third": "0"}, nominated=nominated) == ("n0", 100)
    assert cluster.choose() == (next_one, 100)


def zoned(count, percentage, **settings):
    """Nodes a0, a1, ... in zone a, half as many in zone b, one after the other."""
    names = [f"a{i}" for i in range(count)] + [f"b{i}" for i in range(count // 2)]
    nodes = [make_node(name, labels={ZONE: name[0]}) for name in names]
    return World(*nodes, configuration=configuration(percentage, **settings))


def found(world):
    return [name for name, verdict in trace_of(world.decide(make_pod())).items() if verdict.scores]


def test_a_search_takes_zones_in_turn():
    world = zoned(200, 34)
    assert sorted(found(world)) == sorted(f"{zone}{i}" for zone in "ab" for i in range(51))


def test_a_node_that_changes_its_zone_keeps_its_place_until_a_node_comes_or_goes():
    world = zoned(200, 34)
    assert "a0" in found(world)
    world.cache.set_node(make_node("a0", labels={ZONE: "b"}))
    # The second of three searches of 102 of 300 nodes would come to the end of zone b, the third begins anew.
    assert "a0" not in found(world)
    assert "a0" in found(world)
    world.cache.remove_node("a150")
    assert "a0" not in found(world)
    assert "a0" in found(world)


class TestWithoutScores:
    def test_the_first_node_that_fits_from_the_start_on_is_taken(self):
        cluster = Cluster(50, None, scores=False)
        assert [cluster.choose() for _ in range(3)] == [("n0", 1), ("n1", 1), ("n2", 1)]

    def test_nodes_that_do_not_fit_are_passed_over(self):
        cluster = Cluster(50, None, scores=False)
        # Two more nodes are looked at, as the search ends at the second one that fits.
        assert [cluster.choose(node_selector={"third": "1"}) for _ in range(3)] == [("n1", 1), ("n4", 1), ("n7", 1)]

    def test_zones_take_turns(self):
        world = zoned(4, None, scores=False)
        chosen = [world.schedule(make_pod()).node_name for _ in range(7)]
        assert chosen == ["a0", "b0", "a1", "b1", "a2", "a3", "a0"]

    def test_a_percentage_changes_nothing(self):
        assert Cluster(300, 40, scores=False).choose() == ("n0", 1)


def test_profiles_share_the_start():
    """A pod of one node counts although its own profile looks at all nodes, and before any other search."""
    base = configuration(None)
    (profile,) = base.profiles
    limited = replace(profile, scheduler_name="limited", percentage_of_nodes_to_score=40)
    world = Cluster(300, None)
    frameworks = build_frameworks(replace(base, profiles=(profile, limited)), world.cache.nodes)
    cycle = SchedulingCycle(world.cache.nodes, world.nominator, frameworks.values())
    whole, sampled = frameworks["bayplan"], frameworks["limited"]
    assert cycle.schedule(make_pod_info(), whole).outcome.feasible_nodes == 300
    assert cycle.schedule(make_pod_info(node_affinity=pinned_to([7])), whole).outcome.node_name == "n7"
    placement = cycle.schedule(make_pod_info(), sampled).outcome
    assert (placement.node_name, placement.feasible_nodes) == ("n1", 120)


ZONES = st.sampled_from(["", "x", "y", "z"])
STEPS = st.one_of(
    st.tuples(st.just("move"), st.integers(0, 139), ZONES),
    st.tuples(st.just("drop"), st.integers(0, 139), ZONES),
    st.tuples(st.just("pod"), st.integers(0, 3), st.integers(0, 139)),
)


@settings(max_examples=40)
@given(st.lists(ZONES, min_size=1, max_size=5), st.lists(STEPS, max_size=12), st.booleans())
def test_searches_find_what_kube_schedulers_one_worker_finds(zones, steps, scores):
    """Of 140 nodes a hundred are enough; kind 0 fits everywhere, 1 on two thirds, 2 is pinned, 3 is nominated."""
    made, tree, search = World(configuration=configuration(50, scores=scores)), ReferenceTree(), ReferenceSearch()

    def put(number, zone):
        labels = {"third": str(number % 3)} | ({ZONE: zone} if zone else {})
        made.cache.set_node(make_node(f"n{number}", labels=labels))
        tree.set(f"n{number}", labels)

    for number in range(140):
        put(number, zones[number % len(zones)])
    made.cycle = SchedulingCycle(made.cache.nodes, made.nominator, [made.framework])
    for kind, first, second in [*steps, ("pod", 0, 0)]:
        if kind == "move":
            put(first, second)
        elif kind == "drop" and f"n{first}" in tree.zone_of:
            made.cache.remove_node(f"n{first}")
            tree.remove(f"n{first}")
        elif kind == "pod":
            fields = [
                {},
                {"node_selector": {"third": "1"}, "nominated": f"n{second}"},
                {"node_affinity": pinned_to([second])},
                {"nominated": f"n{second}"},
            ][first]
            everywhere = tree.snapshot()
            nominated = f"n{second}" if "nominated" in fields and f"n{second}" in tree.zone_of else None
            candidates = [f"n{second}"] if first == 2 else everywhere
            expected = search.find(
                everywhere,
                [name for name in candidates if name in tree.zone_of],
                lambda name: first != 1 or int(name[1:]) % 3 == 1,  # noqa: B023
                min(100, len(candidates)) if scores else 1,
                nominated,
            )
            trace = trace_of(made.decide(make_pod(**fields)))
            assert {name for name, verdict in trace.items() if verdict.rejected_by is None} == set(expected)


def test_the_runner_up_is_one_of_the_nodes_that_were_found():
    nodes = NodeTable()
    (framework,) = build_frameworks(configuration(10), nodes).values()
    for number in range(150):
        nodes.set_node(make_node(f"n{number}", cpu=str(200 - number)))
    cycle = SchedulingCycle(nodes, frameworks=[framework])
    decision = cycle.schedule(make_pod_info(cpu="1"), framework)
    found = {name: verdict.score for name, verdict in trace_of(decision).items() if verdict.scores}
    assert len(found) == 100
    best, second = sorted(found.values(), reverse=True)[:2]
    after = runner_up(decision)
    assert (decision.outcome.score, after.score) == (best, second)
    assert found[after.node_name] == second
    assert after.node_name != decision.outcome.node_name
    names = [nodes.names[row] for row in decision.rows.tolist()]
    assert dict(zip(names, decision.totals.tolist(), strict=True)) == found
