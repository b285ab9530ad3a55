import pytest
from tests.builders import make_node, make_pod, make_term
from tests.plugins.preemption.worlds import World

from bayplan.scheduler.cycle import FitError, nodes_to_find


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


class Cluster(World):
    """Equal nodes of which a search looks at a percentage."""

    def __init__(self, nodes, percentage):
        labels = ({"name": f"n{i}", "third": str(i % 3)} for i in range(nodes))
        super().__init__(*(make_node(each["name"], labels=each) for each in labels))
        self.framework.percentage_of_nodes_to_score = percentage

    def choose(self, **fields):
        placement = self.schedule(make_pod(**fields))
        return placement.node_name, placement.feasible_nodes


def test_without_a_percentage_every_node_is_looked_at():
    assert Cluster(300, None).choose(cpu="1") == ("n0", 300)


def test_a_search_starts_where_the_last_one_ended():
    cluster = Cluster(250, 40)
    chosen = [cluster.choose(cpu="1") for _ in range(4)]
    # 100 of 250 nodes are enough: the searches begin at 0, 100, 200 and, past the end, 50.
    assert chosen == [("n0", 100), ("n100", 100), ("n200", 100), ("n50", 100)]


def test_a_search_goes_on_past_nodes_that_do_not_fit():
    cluster = Cluster(400, 25)
    # Every third node fits, so 100 of them are found among the first 298.
    assert cluster.choose(node_selector={"third": "0"}) == ("n0", 100)
    assert cluster.choose() == ("n298", 100)


def test_a_search_that_finds_too_few_has_seen_every_node():
    cluster = Cluster(200, 50)
    assert cluster.choose() == ("n0", 100)
    assert cluster.choose(node_selector={"third": "0"}) == ("n102", 67)
    # It went once around, so the next one starts at the same place.
    assert cluster.choose() == ("n100", 100)


def test_a_search_among_named_nodes_moves_the_start_by_how_many_it_saw():
    cluster = Cluster(300, 40)
    named = [make_term("third In 0", fields=[f"metadata.name In n{i}"]) for i in range(150)]
    assert cluster.choose(node_affinity=named) == ("n0", 50)
    assert cluster.choose() == ("n150", 120)


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
