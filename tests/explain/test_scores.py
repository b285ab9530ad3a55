"""How the chosen node's score came about, beside that of the node that came second."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.builders import make_node, make_pod
from tests.evaluation.clusters import default_profile, node_forms, node_of, pod_of, profiles, shapes
from tests.explain.scenes import Scene

from bayplan.config.types import (
    NodeResourcesFitArgs,
    ResourceSpec,
    ScoringStrategy,
    ScoringStrategyType,
    UtilizationShapePoint,
)
from bayplan.explain.explain import Explainer
from bayplan.explain.trace import trace_of
from bayplan.framework.status import ResourceScore
from bayplan.scheduler.decision import Placement

SHAPE = (UtilizationShapePoint(0, 0), UtilizationShapePoint(100, 10))


def packing_profile():
    strategy = ScoringStrategy(
        ScoringStrategyType.REQUESTED_TO_CAPACITY_RATIO, (ResourceSpec("cpu", 3), ResourceSpec("memory", 1)), SHAPE
    )
    profile = default_profile()
    return replace(
        profile,
        plugin_config=profile.plugin_config | {"NodeResourcesFit": NodeResourcesFitArgs(scoring_strategy=strategy)},
    )


def of_fit(scored):
    (found,) = [each for each in scored.plugins if each.plugin == "NodeResourcesFit"]
    return found


def test_use_before_and_after_and_the_point_of_the_shape_are_told_for_each_resource():
    nodes = [make_node("n1", cpu=4, memory="4Gi"), make_node("n2", cpu=4, memory="4Gi")]
    running = [make_pod("r", node="n1", cpu=1, memory="1Gi")]
    explanation = Scene(nodes, running, packing_profile()).explain(make_pod(cpu=1, memory="1Gi"))
    gib = 2**30
    fit = of_fit(explanation.chosen)
    assert fit.resources == (
        ResourceScore("cpu", 1000, 2000, 4000, 50, 3, 5),
        ResourceScore("memory", gib, 2 * gib, 4 * gib, 50, 1, 5),
    )
    assert (explanation.chosen.node, fit.score, fit.of_ten) == ("n1", 50, 5)
    assert (explanation.runner_up.node, of_fit(explanation.runner_up).score) == ("n2", 25)


def test_numbers_are_told_for_the_only_node_that_fits_and_that_nothing_was_compared():
    scene = Scene([make_node("n1", cpu=4), make_node("n2", cpu=1)], profile=packing_profile())
    explanation = scene.explain(make_pod(cpu=2))
    assert explanation.unscored == "the only node that fits"
    assert (explanation.runner_up, explanation.margin) == (None, None)
    assert of_fit(explanation.chosen).resources[0] == ResourceScore("cpu", 0, 2000, 4000, 50, 3, 5)
    text = scene.text(make_pod(cpu=2))
    assert text[0] == "default/p: n1, the only node that fits, not compared by score; 1 of 2 nodes fits"
    assert "    cpu: 0m -> 2000m of 4000m, 50 %: 50 points (5 of 10), weight 3" in text


def test_of_equal_nodes_the_first_is_said_to_win():
    text = Scene([make_node("n1"), make_node("n2")]).text(make_pod(cpu=1))
    assert ", the first of equals, as n2; 2 of 2 nodes fit" in text[0]


def test_a_weight_is_told_apart_from_the_score():
    explanation = Scene([make_node("n1"), make_node("n2")]).explain(make_pod(cpu=1))
    (taints,) = [each for each in explanation.chosen.plugins if each.plugin == "TaintToleration"]
    assert (taints.score, taints.weight, taints.weighted) == (100, 3, 300)


def test_what_is_assumed_for_containers_that_ask_for_none_stands_beside_the_share():
    nodes = [make_node("n1", cpu=4, memory="4Gi"), make_node("n2", cpu=4, memory="4Gi", unschedulable=True)]
    running = [make_pod("r", node="n1", cpu=4)]
    text = Scene(nodes, running).text(make_pod())
    (cpu,) = [line for line in text if line.startswith("    cpu: ")]
    (memory,) = [line for line in text if line.startswith("    memory: ")]
    assert cpu.startswith(
        "    cpu: 4000m -> 4100m of 4000m, 102 % (100m of it assumed for containers that ask for none): "
    )
    assert "400Mi of 4Gi, 9 % (400Mi of it assumed for containers that ask for none): " in memory


def test_what_every_node_gets_is_one_sum_and_nothing_where_one_node_was_left():
    nodes = [make_node("n1", cpu=4), make_node("n2", cpu=8)]
    scene = Scene(nodes)
    chosen = scene.explain(make_pod(cpu=2)).chosen
    same = [each for each in chosen.plugins if each.everywhere]
    told = [line for line in scene.text(make_pod(cpu=2)) if " = " in line]
    assert sum(each.weighted for each in same) == 300
    assert all(line.endswith(" + 300 that every node gets") for line in told)
    assert not any(each.plugin in line for each in same for line in told)
    alone = Scene(nodes[:1]).text(make_pod(cpu=2))
    assert not any("every node" in line for line in alone)


def test_where_every_node_gets_the_same_there_is_no_sum():
    text = Scene([make_node("n1"), make_node("n2")]).text(make_pod(cpu=1))
    (line,) = [each for each in text if each.startswith("  n1: ")]
    total = line.removeprefix("  n1: ").partition(",")[0]
    assert line == f"  n1: {total}, which every node gets"


@given(st.lists(node_forms(), min_size=1, max_size=6), st.lists(shapes(), max_size=5), shapes(), profiles())
def test_scores_add_up_to_the_totals_that_were_compared(forms, running, shape, profile):
    nodes = [node_of(form, f"n{i}") for i, form in enumerate(forms, 1)]
    placed = [pod_of(each, f"r{i}", node=f"n{1 + i % len(nodes)}") for i, each in enumerate(running)]
    scene = Scene(nodes, placed, profile)
    decision = scene.decide(pod_of(shape, "p"))
    outcome = decision.outcome
    if not isinstance(outcome, Placement):
        return
    explanation, trace = Explainer(scene.cache.nodes).explain(decision), trace_of(decision)
    scored = [each for each in (explanation.chosen, explanation.runner_up) if each is not None]
    assert explanation.chosen.node == outcome.node_name
    for each in scored:
        assert each.total == sum(plugin.weighted for plugin in each.plugins)
        assert all(plugin.weighted == plugin.score * plugin.weight for plugin in each.plugins)
        assert all(resource.before <= resource.after for plugin in each.plugins for resource in plugin.resources)
        if outcome.score is not None:
            assert each.total == trace[each.node].score
    if explanation.runner_up is not None:
        others = [verdict.score for name, verdict in trace.items() if not verdict.rejected_by]
        others.remove(explanation.chosen.total)
        assert explanation.runner_up.total == max(others)
        assert explanation.margin == outcome.score - max(others)
