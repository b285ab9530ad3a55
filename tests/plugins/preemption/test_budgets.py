from tests.builders import make_node
from tests.plugins.preemption.worlds import World, high, low, make_budget, minute

from bayplan.plugins.node_resources.node_resources_fit import NodeResourcesFit


def test_a_node_whose_budgets_hold_is_preferred_and_violations_are_counted():
    world = World(
        make_node("n1", cpu="4"),
        make_node("n2", cpu="4"),
        low("guarded", "n1", priority=0, labels={"app": "a"}),
        low("free", "n2", priority=5),
        make_budget(app="a"),
    )
    outcome = world.schedule(high())
    assert {each.node_name: each.pdb_violations for each in outcome.post_filter.candidates} == {"n1": 1, "n2": 0}
    assert outcome.post_filter.nominated_node_name == "n2"


def test_pods_that_would_violate_a_budget_are_spared_first():
    world = World(
        make_node("n1", cpu="4"),
        low("guarded", cpu="2", priority=0, labels={"app": "a"}),
        low("free", cpu="2", priority=5),
        make_budget(app="a"),
    )
    assert world.preempt(high(cpu="2")) == ("n1", ["free"])


def test_a_budget_that_allows_one_disruption_protects_the_less_important_pod():
    world = World(
        make_node("n1", cpu="4"),
        low("old", start_time=minute(1), labels={"app": "a"}),
        low("young", start_time=minute(2), labels={"app": "a"}),
        make_budget(allowed=1, app="a"),
    )
    assert world.preempt(high(cpu="2")) == ("n1", ["old"])


def test_a_pod_that_overdraws_a_budget_takes_from_no_further_one():
    world = World(
        make_node("n1", cpu="4"),
        low("first", start_time=minute(1), labels={"app": "a", "tier": "t"}),
        low("second", start_time=minute(2), labels={"tier": "t"}),
        make_budget("of-app", app="a"),
        make_budget("of-tier", allowed=1, tier="t"),
    )
    (candidate,) = world.schedule(high()).post_filter.candidates
    assert candidate.pdb_violations == 1


def test_disruptions_that_are_counted_already_violate_nothing():
    world = World(make_node("n1", cpu="4"), low("a", labels={"app": "a"}), make_budget(disrupted=["a"], app="a"))
    (candidate,) = world.schedule(high()).post_filter.candidates
    assert candidate.pdb_violations == 0


def test_where_every_node_violates_a_budget_victims_are_selected_on_many_nodes_at_once(monkeypatch):
    filters = []
    run = NodeResourcesFit.filter

    def count(*arguments):
        filters.append(arguments)
        return run(*arguments)

    monkeypatch.setattr(NodeResourcesFit, "filter", count)
    counts = []
    for number in (400, 800):
        world = World(make_budget(app="a"), *[make_node(f"n{i}", cpu="4") for i in range(number)])
        world.add(*[low(f"p{i}", f"n{i}", cpu="4", labels={"app": "a"}) for i in range(number)])
        filters.clear()
        assert len(world.schedule(high()).post_filter.candidates) == number
        counts.append(len(filters))
    assert counts[1] <= counts[0] + 2, counts
