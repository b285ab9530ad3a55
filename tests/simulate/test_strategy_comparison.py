import pytest

from bayplan.config.types import ScoringStrategyType
from bayplan.simulate.strategy_comparison import (
    ASCII,
    BLOCKS,
    StrategyComparison,
    bar,
    frame,
    glyphs_for,
    progress,
    result,
    strategy_configuration,
)


def run(comparison, step=7):
    while comparison.advance(step):
        pass
    return comparison


@pytest.fixture(scope="module")
def finished():
    return run(StrategyComparison(nodes=30, pods=100, seed=3))


def test_packing_uses_fewer_nodes_than_spreading_and_no_fewer_than_the_bound(finished):
    most, least = finished.most.use(), finished.least.use()
    assert most.lower_bound_nodes <= most.nodes_in_use < least.nodes_in_use
    assert finished.most.decisions == finished.least.decisions == 100


@pytest.mark.parametrize("step", [1, 1000])
def test_the_outcome_depends_on_the_seed_alone(finished, step):
    again = run(StrategyComparison(nodes=30, pods=100, seed=3), step)
    assert result(again) == result(finished)
    assert (
        frame(again, width=80, height=24).plain.splitlines()[2:]
        == (frame(finished, width=80, height=24).plain.splitlines()[2:])
    )


@pytest.fixture(scope="module")
def crowded():
    """More pods than there is room for: some are tried several times, and some are evicted."""
    return run(StrategyComparison(nodes=30, pods=200, seed=1))


@pytest.mark.parametrize("step", [1, 20, 1000])
def test_more_pods_than_room_end_the_same_however_many_decisions_are_made_at_once(crowded, step):
    assert crowded.most.decisions > 200
    again = run(StrategyComparison(nodes=30, pods=200, seed=1), step)
    assert (result(again), again.most.decisions) == (result(crowded), crowded.most.decisions)


def test_pods_are_counted_and_not_attempts(crowded):
    summary = crowded.most.simulator.report().summary
    placed = summary.allocation["pods"].requested
    assert summary.preempted > 0
    assert crowded.most.waiting == 200 - placed
    assert result(crowded).endswith(f"; {200 - placed} unplaced")
    assert progress(crowded).startswith(f"decided 200/200  queue 0  no room {200 - placed} ")


def test_pods_wait_in_bursts():
    comparison = StrategyComparison(nodes=10, pods=50, seed=1)
    comparison.advance(1)
    assert (comparison.arrived, comparison.most.queued) == (10, 9)
    assert "decided 1/50  queue 9" in progress(comparison)


@pytest.mark.parametrize(("width", "height"), [(80, 24), (140, 45), (40, 12), (20, 5)])
@pytest.mark.parametrize("nodes", [1, 30, 200])
def test_every_frame_fits_the_terminal(nodes, width, height):
    comparison = StrategyComparison(nodes=nodes, pods=40, seed=1)
    more = True
    while more:
        more = comparison.advance(15)
        lines = frame(comparison, width=width, height=height).plain.splitlines()
        assert max(map(len, lines)) <= width
        assert len(lines) <= max(height - 1, 9)


def test_the_default_demo_shows_all_its_nodes_at_80_by_24(finished):
    text = frame(finished, width=80, height=24).plain
    assert all(node.metadata.name in text for node in finished.nodes)
    assert result(finished) in text


def test_nodes_that_do_not_fit_are_counted():
    assert "of them not shown above" in frame(StrategyComparison(nodes=200, pods=1, seed=1), width=80, height=24).plain


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [(0, 8, "...."), (8, 8, "####"), (4, 8, "##.."), (1, 1000, "#..."), (9, 8, "####"), (0, 0, "    ")],
)
def test_bars_show_shares_and_anything_above_zero(part, whole, text):
    assert bar(part, whole, 4, ASCII) == text


def test_bars_are_fine_where_the_terminal_can_draw_it():
    assert bar(1, 8, 4, BLOCKS) == "▌···"
    assert (glyphs_for("utf-8"), glyphs_for("ascii"), glyphs_for(None), glyphs_for("nope")) == (
        BLOCKS,
        ASCII,
        ASCII,
        ASCII,
    )


def test_both_strategies_differ_in_nothing_else():
    most = strategy_configuration(ScoringStrategyType.MOST_ALLOCATED).profiles[0]
    least = strategy_configuration(ScoringStrategyType.LEAST_ALLOCATED).profiles[0]
    assert most.plugins == least.plugins
    assert most.plugin_config.keys() == least.plugin_config.keys()
    assert {name for name in most.plugin_config if most.plugin_config[name] != least.plugin_config[name]} == {
        "NodeResourcesFit"
    }
