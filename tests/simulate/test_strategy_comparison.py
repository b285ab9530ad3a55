import pytest

from bayplan.config.types import ScoringStrategyType
from bayplan.simulate.demo_frame import ASCII, BLOCKS, frame, wrapped
from bayplan.simulate.strategy_comparison import StrategyComparison, strategy_configuration


def lines_of(comparison):
    return [line for stage in comparison.scene.stages for lines in comparison.play(stage) for line in lines]


@pytest.fixture(scope="module")
def told():
    comparison = StrategyComparison(nodes=30, pods=160, seed=3)
    return comparison, lines_of(comparison)


@pytest.mark.parametrize(
    ("nodes", "pods", "seed"), [(1, 1, 1), (1, 40, 2), (2, 60, 1), (12, 60, 2), (30, 160, 3), (6, 200, 9)]
)
def test_at_any_moment_the_places_of_the_pods_add_up_to_those_that_were_asked_for(nodes, pods, seed):
    comparison = StrategyComparison(nodes=nodes, pods=pods, seed=seed)
    for stage in comparison.scene.stages:
        for _ in comparison.play(stage):
            assert [sum(run.counts.values()) for run in comparison.runs] == [pods, pods]
    assert [run.counts["to come"] for run in comparison.runs] == [0, 0]


def test_what_is_told_adds_up_to_what_is_counted(told):
    comparison, lines = told
    for run in comparison.runs:
        mine = [line for line in lines if line.startswith(run.label)]
        placed = sum(" nodes fit" in line or " nodes fits" in line for line in mine)
        departed = sum(" departs" in line for line in mine)
        assert departed == run.counts["departed"]
        assert placed == run.counts["pods on nodes"] + departed + run.counts["evicted"]


def test_packing_uses_fewer_nodes_than_spreading_at_the_end_of_every_stage(told):
    comparison, _ = told
    assert len(comparison.results) == 3
    assert all(most.in_use < least.in_use for _, most, least in comparison.results)


def test_departures_free_nodes_and_leave_others_that_could_be_emptied(told):
    (_, *_), (_, most, least), (_, most_after, least_after) = told[0].results
    assert most_after.in_use < most.in_use
    assert least_after.in_use < least.in_use
    assert most_after.emptiable > most.emptiable


def test_a_placement_names_the_score_and_the_runner_up(told):
    assert any(line.startswith("packed pod-00156: gpu-005 with 471, 1 more than gpu-004;") for line in told[1])


@pytest.mark.parametrize("run", [0, 1])
def test_an_eviction_names_victims_node_and_the_criterion(told, run):
    comparison, lines = told
    line = comparison.runs[run].last_eviction
    assert line in lines
    assert "urgent-02 (priority 10000) evicts pod-" in line
    assert "(priority 1000)" in line
    assert any(f" from gpu-00{number}: " in line for number in range(10))
    assert line.endswith(" nodes")


def test_a_pod_that_finds_no_node_is_told_once_with_the_reason():
    lines = lines_of(StrategyComparison(nodes=1, pods=40, seed=2))
    waits = [line for line in lines if line.startswith("packed") and " waits: 0/1 nodes are available: " in line]
    assert waits
    assert len(waits) == len(set(waits))
    assert any("departs, no node was found" in line for line in lines)


def test_the_same_seed_gives_the_same_lines(told):
    assert lines_of(StrategyComparison(nodes=30, pods=160, seed=3)) == told[1]


def test_the_packed_cluster_has_its_pods_on_nodes_and_the_urgent_ones_wait():
    configuration, objects = StrategyComparison(nodes=30, pods=160, seed=3).filled_and_packed()
    bound = [pod for pod in objects.pods if pod.pod.spec.node_name]
    assert {pod.pod.spec.node_name for pod in bound} <= {node.metadata.name for node in objects.nodes}
    assert [pod.name for pod in objects.pods[len(bound) :]] == ["urgent-00", "urgent-01", "urgent-02"]
    assert len({pod.pod.spec.node_name for pod in bound}) == 11
    assert configuration == strategy_configuration(ScoringStrategyType.MOST_ALLOCATED)


@pytest.mark.parametrize("width", [40, 60, 78, 79, 80, 140])
@pytest.mark.parametrize("glyphs", [ASCII, BLOCKS])
def test_nothing_is_wider_than_the_terminal_and_every_number_is_there(told, width, glyphs):
    comparison, lines = told
    text = frame(comparison, width=width, height=50, glyphs=glyphs, events=lines[-3:]).plain
    assert max(map(len, text.splitlines())) <= width
    for part in ("MostAllocated", "LeastAllocated", "all pods", "half departed", "11 / 1", "30 / 22"):
        assert part in text
    assert ("LeastAllocated" in text.splitlines()[1]) == (width >= 79)


@pytest.mark.parametrize(("width", "height"), [(80, 23), (60, 23), (40, 23), (140, 44), (80, 18)])
@pytest.mark.parametrize("nodes", [3, 30, 200])
def test_a_picture_fits_the_terminal_until_the_result_comes_below_it(nodes, width, height):
    comparison = StrategyComparison(nodes=nodes, pods=20, seed=1)
    events = []
    for lines in comparison.play(comparison.scene.stages[0]):
        events += lines
        picture = frame(comparison, width=width, height=height, glyphs=BLOCKS, events=events).plain
        assert len(picture.splitlines()) <= height


def test_the_last_evictions_stay_above_what_happened_last(told):
    comparison, lines = told
    text = frame(comparison, width=200, height=40, glyphs=ASCII, events=lines).plain.splitlines()
    last = [run.last_eviction for run in comparison.runs]
    assert [text.index(line) for line in last] == [text.index(last[0]), text.index(last[0]) + 1]
    assert text[-1] == lines[-1]


def test_a_long_line_is_broken_and_loses_nothing():
    line = "spread urgent-00: gpu-005, fits on the node it was nominated to, not compared by score; 1 of 30 nodes fits"
    broken = wrapped(line, 40)
    assert max(map(len, broken)) <= 40
    assert " ".join(each.strip() for each in broken) == line


def test_both_strategies_differ_in_nothing_else():
    most = strategy_configuration(ScoringStrategyType.MOST_ALLOCATED).profiles[0]
    least = strategy_configuration(ScoringStrategyType.LEAST_ALLOCATED).profiles[0]
    assert most.plugins == least.plugins
    assert most.plugin_config.keys() == least.plugin_config.keys()
    assert {name for name in most.plugin_config if most.plugin_config[name] != least.plugin_config[name]} == {
        "NodeResourcesFit"
    }
