import pytest
from tests.builders import make_node, make_pod, make_term

from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.config.load import default_configuration
from bayplan.plugins.registry import build_frameworks
from bayplan.scheduler.cycle import FitError, SchedulingCycle
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
        (5000, 0, 500),
        (5000, 1, 100),
        (5625, 0, 281),
        (6000, 0, 300),
        (10_000, 0, 500),
    ],
)
def test_how_many_feasible_nodes_are_enough(count, percentage, wanted):
    assert nodes_to_find(count, percentage) == wanted


class Scene:
    def __init__(self, nodes, percentage):
        self.table = NodeTable()
        for i in range(nodes):
            self.table.set_node(make_node(f"n{i}", labels={"name": f"n{i}", "third": str(i % 3)}))
        configuration = default_configuration()
        (self.framework,) = build_frameworks(configuration, self.table).values()
        self.framework.percentage_of_nodes_to_score = percentage
        self.cycle = SchedulingCycle(self.table)

    def schedule(self, **fields):
        return self.cycle.schedule(PodInfo(make_pod(**fields)), self.framework)

    def choose(self, **fields):
        placement = self.schedule(**fields)
        return placement.node_name, placement.feasible_nodes


def test_without_a_percentage_every_node_is_looked_at():
    assert Scene(300, None).choose(cpu="1") == ("n0", 300)


def test_a_search_starts_where_the_last_one_ended():
    scene = Scene(250, 40)
    chosen = [scene.choose(cpu="1") for _ in range(4)]
    # 100 of 250 nodes are enough: the searches begin at 0, 100, 200 and, past the end, 50.
    assert chosen == [("n0", 100), ("n100", 100), ("n200", 100), ("n50", 100)]


def test_a_search_goes_on_past_nodes_that_do_not_fit():
    scene = Scene(400, 25)
    # Every third node fits, so 100 of them are found among the first 298.
    assert scene.choose(node_selector={"third": "0"}) == ("n0", 100)
    assert scene.choose() == ("n298", 100)


def test_a_search_that_finds_too_few_has_seen_every_node():
    scene = Scene(200, 50)
    assert scene.choose() == ("n0", 100)
    assert scene.choose(node_selector={"third": "0"}) == ("n102", 67)
    # It went once around, so the next one starts at the same place.
    assert scene.choose() == ("n100", 100)


def test_a_search_among_named_nodes_moves_the_start_by_how_many_it_saw():
    scene = Scene(300, 40)
    named = [make_term("third In 0", fields=[f"metadata.name In n{i}"]) for i in range(150)]
    assert scene.choose(node_affinity=named) == ("n0", 50)
    assert scene.choose() == ("n150", 120)


def test_small_clusters_are_always_searched_whole():
    scene = Scene(99, 1)
    assert [scene.choose() for _ in range(2)] == [("n0", 99), ("n0", 99)]


def test_a_pod_that_fits_nowhere_is_told_of_all_nodes_and_moves_no_start():
    scene = Scene(200, 50)
    outcome = scene.schedule(cpu="100")
    assert isinstance(outcome, FitError)
    assert outcome.message == (
        "0/200 nodes are available: 200 Insufficient cpu. "
        "preemption: 0/200 nodes are available: 200 Preemption is not helpful for scheduling."
    )
    assert scene.choose() == ("n0", 100)


def test_what_a_sampled_search_finds_is_scored_among_itself():
    scene = Scene(200, 50)
    for row, taken in ((150, "3"), (30, "1")):
        scene.table.add_pod(PodInfo(make_pod(cpu=taken, memory="8Gi")), f"n{row}")
    # n150 is the fullest of all, n30 the fullest of the hundred that were found.
    assert scene.choose(cpu="1", memory="1Gi")[0] == "n30"
    assert scene.choose(cpu="1", memory="1Gi")[0] == "n150"
