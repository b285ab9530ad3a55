import io
import re
from dataclasses import replace

import pytest
from tests.builders import make_node, make_pod

from bayplan.cache.pod_info import PodInfo
from bayplan.config.load import default_configuration
from bayplan.config.types import PluginEntry, PluginSet
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.simulator import Simulator
from bayplan.simulate.step import explaining
from bayplan.simulate.tables import (
    Column,
    Printer,
    amount,
    percent,
    pod_row,
    print_explanation,
    print_pods,
    print_summary,
)


def decided(*pods, nodes=None, configuration=None):
    simulator = Simulator(configuration or default_configuration())
    nodes = nodes or [make_node("n1"), make_node("n2", cpu=2), make_node("n3", taints=["a:NoSchedule"])]
    simulator.add(ClusterObjects(nodes=nodes, pods=[PodInfo(pod) for pod in pods]))
    simulator.reader = explaining(simulator.cache.nodes)
    steps = []
    while (step := simulator.step()) is not None:
        steps.append(step)
    return steps, simulator.report()


def printed(print_it, **options):
    stream = io.StringIO()
    print_it(Printer(stream, **options))
    return stream.getvalue()


def test_a_placed_pod_shows_its_node_total_and_plugin_scores():
    (step,), _ = decided(make_pod("p", cpu=1, memory="1Gi"))
    key, node, score, why = pod_row(step)
    assert (key, node, score) == ("default/p", step.outcome.node_name, str(step.outcome.score))
    assert f"NodeResourcesFit {step.read.scores['NodeResourcesFit']}" in why


def test_a_pod_on_the_only_node_that_fits_says_so():
    (step,), _ = decided(make_pod("p", cpu=4))
    assert pod_row(step) == ("default/p", "n1", "", "the only node that fits")


def without_scores():
    configuration = default_configuration()
    (profile,) = configuration.profiles
    plugins = replace(profile.plugins, score=PluginSet(disabled=(PluginEntry("*"),)))
    return replace(configuration, profiles=(replace(profile, plugins=plugins),))


@pytest.mark.parametrize(
    ("pod", "configuration", "why"),
    [
        (make_pod("p", cpu=1, nominated="n1"), None, "fits on the node it was nominated to"),
        (make_pod("p", cpu=1), without_scores(), "the first node that fits: no plugin scores nodes"),
        (make_pod("p", cpu=4), without_scores(), "the only node that fits"),
    ],
)
def test_a_node_chosen_without_scores_says_why_there_are_none(pod, configuration, why):
    (step,), _ = decided(pod, configuration=configuration)
    assert pod_row(step) == ("default/p", "n1", "", why)
    text = printed(lambda p: print_explanation(p, step.pod, step.read.explanation), terminal=False)
    assert text.startswith(f"default/p: n1, {why}, not compared by score; ")


def test_a_pod_without_a_node_shows_the_message():
    (step,), _ = decided(make_pod("p", cpu=100))
    assert pod_row(step)[:3] == ("default/p", "-", "")
    assert pod_row(step)[3].startswith("0/3 nodes are available: ")


def test_plain_listings_align_without_cutting():
    rows = [("a", "1", "x" * 200), ("long name", "100", "y")]
    text = printed(lambda p: p.listing((Column("NAME"), Column("N", number=True), Column("WHY")), rows), terminal=False)
    assert text.splitlines() == ["NAME         N  WHY", f"a            1  {'x' * 200}", "long name  100  y"]


@pytest.mark.parametrize("width", [20, 40, 80])
def test_terminal_listings_fit_the_width(width):
    rows = [("default/some-pod", "node-1", "100", "0/3 nodes are available: 3 Insufficient cpu. " * 3)]
    text = printed(lambda p: print_pods(p, rows), terminal=True, width=width)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()
    assert max(map(len, lines)) <= width


def test_nothing_a_terminal_acts_on_is_printed():
    rows = [("\x1b]0;evil\x07", "[bold]n[/bold]", "", "\ud800\u202e")]
    for terminal in (True, False):
        text = printed(lambda p: print_pods(p, rows), terminal=terminal, width=120)
        assert r"\x1b]0;evil\x07" in text
        assert "[bold]n[/bold]" in text
        assert r"\ud800\u202e" in text


def test_an_explanation_names_the_chosen_node_the_runner_up_and_why_others_were_rejected():
    (step,), _ = decided(make_pod("p", cpu=1, memory="1Gi"))
    text = printed(lambda p: print_explanation(p, step.pod, step.read.explanation), terminal=False)
    lines = text.splitlines()
    (runner_up,) = {"n1", "n2"} - {step.outcome.node_name}
    assert lines[0].startswith(f"default/p: {step.outcome.node_name} with {step.outcome.score}, ")
    assert lines[0].endswith(f" {runner_up}; 2 of 3 nodes fit")
    assert lines[-2] == "  1 node: TaintToleration: taint a:NoSchedule not tolerated (n3)"


@pytest.mark.parametrize("width", [40, 60])
def test_an_explanation_fits_a_narrow_terminal(width):
    (step,), _ = decided(make_pod("p" * 250, cpu=100))
    text = printed(lambda p: print_explanation(p, step.pod, step.read.explanation), terminal=True, width=width)
    assert max(map(len, re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines())) <= width


def test_the_summary_names_every_count_that_is_not_zero():
    pods = [make_pod("a", cpu=1), make_pod("b", cpu=100), make_pod("c", gates=["g"]), make_pod("d", node="n1")]
    _, report = decided(*pods)
    text = printed(lambda p: print_summary(p, report.summary), terminal=False)
    assert "Pods:  4: 1 scheduled, 1 unschedulable, 1 gated, 1 already on nodes\n" in text
    assert "Nodes: " in text
    assert "Ignored" not in text


@pytest.mark.parametrize("requests", [{"cpu": 9}, {"example.com/none": 1}])
def test_nodes_that_hold_more_than_they_offer_are_counted_and_no_packing_has_to_hold_so_much(requests):
    nodes = [make_node(f"n{i}", cpu=4) for i in range(3)]
    _, report = decided(make_pod("by-hand", node="n1", requests=requests), nodes=nodes)
    text = printed(lambda p: print_summary(p, report.summary), terminal=False)
    assert "Nodes: 1 of 3 in use, 1 overcommitted; no packing that fits needs fewer than 3\n" in text


def test_amounts_that_are_counted_in_part_are_told_as_the_least_there_is():
    nodes = [make_node(f"n{i}", cpu=4, memory="200Pi") for i in range(2)]
    _, report = decided(make_pod("p", cpu=1, memory="1Gi"), nodes=nodes)
    rows = printed(lambda p: print_summary(p, report.summary), terminal=False).splitlines()
    assert [row.split(maxsplit=1)[1] for row in rows if row.startswith("memory")] == [
        "1.0 GiB  at least 134,217,728.0 GiB       -                -"
    ]
    assert report.summary.allocation["memory"].at_least is True
    assert "at least" not in next(row for row in rows if row.startswith("cpu"))


def test_nodes_that_are_full_hold_no_more_than_they_offer():
    _, report = decided(make_pod("all", node="n1", cpu=4), nodes=[make_node("n1", cpu=4, pods=1)])
    assert report.summary.overcommitted_nodes == 0
    _, report = decided(make_pod("a", node="n1"), make_pod("b", node="n1"), nodes=[make_node("n1", pods=1)])
    assert report.summary.overcommitted_nodes == 1


def test_amounts_are_in_the_units_people_use():
    assert amount("cpu", 1500) == "1.5"
    assert amount("memory", 3 * 2**29) == "1.5 GiB"
    assert amount("nvidia.com/gpu", 12000) == "12,000"
    assert (percent(1, 8), percent(0, 0)) == ("12.5%", "-")
