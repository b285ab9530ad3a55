import io
import json
import re
from dataclasses import replace

import pytest
from tests.builders import make_node, make_pod

from bayplan.cache.pod_info import PodInfo
from bayplan.config.load import default_configuration
from bayplan.config.types import ScoringStrategyType
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.comparison import (
    MOVED_SHOWN,
    compared,
    own_pods,
    placements,
    print_comparison,
)
from bayplan.simulate.report import Compared, encode
from bayplan.simulate.simulator import Simulator
from bayplan.simulate.strategy_comparison import strategy_configuration
from bayplan.simulate.tables import Printer

PACKED = strategy_configuration(ScoringStrategyType.MOST_ALLOCATED)
SPREAD = strategy_configuration(ScoringStrategyType.LEAST_ALLOCATED)


def cluster(pods=2, nodes=2):
    return ClusterObjects(
        nodes=[make_node(f"n{number}", cpu="4", memory="8Gi") for number in range(nodes)],
        pods=[PodInfo(make_pod(f"p{number}", cpu="1", memory="2Gi")) for number in range(pods)],
    )


def outcome(name, configuration, objects):
    simulator = Simulator(configuration)
    simulator.add(own_pods(objects))
    report = simulator.run()
    return Compared(name, report), placements(simulator.cache.nodes)


def compare(objects, *configurations):
    named = zip("abcdefgh", configurations, strict=False)
    return compared([outcome(f"{name}.yaml", each, objects) for name, each in named])


def printed(comparison, **options):
    stream = io.StringIO()
    print_comparison(Printer(stream, **options), comparison)
    return re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue())


def test_each_configuration_has_its_own_report_on_the_same_cluster():
    first, second = compare(cluster(), PACKED, SPREAD).configurations
    assert (first.config, first.report.summary.nodes_in_use) == ("a.yaml", 1)
    assert (second.config, second.report.summary.nodes_in_use) == ("b.yaml", 2)


def test_a_configuration_decides_as_if_it_were_the_only_one():
    # Signatures of a profile are kept on pods: both configurations call theirs the same.
    objects = cluster(pods=6, nodes=3)
    alone = [outcome("x", each, cluster(pods=6, nodes=3))[1] for each in (PACKED, SPREAD)]
    together = [outcome("x", each, objects)[1] for each in (PACKED, SPREAD)]
    assert together == alone


def test_pods_that_are_elsewhere_are_told_with_all_their_nodes():
    moved = compare(cluster(), PACKED, SPREAD, PACKED).moved
    (pod,) = moved
    on_first, elsewhere, again = pod.nodes
    assert (pod.namespace, on_first) == ("default", again)
    assert {on_first, elsewhere} == {"n0", "n1"}


def test_a_pod_without_a_node_is_elsewhere_too():
    small = replace(PACKED, profiles=tuple(replace(each, scheduler_name="other") for each in PACKED.profiles))
    assert {pod.nodes[1] for pod in compare(cluster(), PACKED, small).moved} == {None}


def test_the_same_configuration_moves_nothing():
    comparison = compare(cluster(), PACKED, PACKED)
    assert comparison.moved == []
    assert "All pods are on the same nodes." in printed(comparison, terminal=False)


def test_moved_pods_are_in_the_order_people_expect():
    names = [pod.name for pod in compare(cluster(pods=16, nodes=8), PACKED, SPREAD).moved]
    assert names == sorted(names, key=lambda name: int(name[1:]))
    assert len(names) > 2


def test_the_table_has_a_column_for_each_file_and_what_is_stranded():
    objects = ClusterObjects(
        nodes=[make_node("n0", cpu="4", memory="8Gi"), make_node("n1", cpu="4", memory="8Gi")],
        pods=[PodInfo(make_pod(f"p{number}", cpu="2", memory="1Gi")) for number in range(2)],
    )
    lines = printed(compare(objects, PACKED, SPREAD), terminal=False).splitlines()
    assert lines[:3] == ["A: a.yaml", "B: b.yaml", ""]
    table = {line[:29].strip(): line[29:].split("  ") for line in lines[3:]}
    cells = {label: [cell.strip() for cell in row if cell.strip()] for label, row in table.items()}
    assert cells["nodes in use"] == ["1", "2"]
    assert cells["no packing needs fewer than"] == ["1", "1"]
    assert cells["memory stranded"] == ["6.0 GiB", "0.0 GiB"]
    assert cells["cpu free on one node"] == ["4", "2"]
    assert "overcommitted nodes" not in table


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("configurations", [2, 3, 8])
def test_nothing_is_cut_at_any_width(width, configurations):
    comparison = compare(cluster(), *([PACKED, SPREAD] * 4)[:configurations])
    text = printed(comparison, terminal=True, width=width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    assert text.count("no packing needs fewer than") >= 1
    values = [line.split()[-1] for line in text.splitlines() if "nodes in use" in line]
    assert set(values) <= {"1", "2"}


def test_of_many_moved_pods_the_table_shows_some_and_the_json_all():
    comparison = compare(cluster(pods=30, nodes=30), PACKED, SPREAD)
    count = len(comparison.moved)
    assert count > MOVED_SHOWN
    text = printed(comparison, terminal=False)
    assert f"and {count - MOVED_SHOWN} more, which -o json has" in text
    assert len(json.loads(encode(comparison))["moved"]) == count


def test_the_default_configuration_is_no_other_than_itself():
    assert compare(cluster(), default_configuration(), default_configuration()).moved == []
