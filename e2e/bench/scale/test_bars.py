"""Which bars a scale benchmark passes."""

import pytest

from e2e.bench.contestants import BAYPLAN, SAMPLED
from e2e.bench.made_up import drain
from e2e.bench.results import Steady
from e2e.bench.scale.figures import COLD, FLOWS, LARGE, MB, Outcome, Start, bars, lines
from e2e.bench.scale.scenes import scenes


def flow(rate: float, *, p50: float = 0.01, p99: float = 0.1, all_bound: float = 10.0) -> Steady:
    return Steady(
        pods=100,
        rate=rate,
        achieved_rate=rate,
        p50=p50,
        p99=p99,
        longest=p99,
        create_p50=0.001,
        cpu=0.1,
        events=100,
        peak_rss=MB,
        all_bound=all_bound,
    )


def start(*, ready: float = 5.0, seconds: float = 10.0, megabytes: int = 300) -> Start:
    drained = drain(pods=1000, seconds=seconds, peak_rss=megabytes * MB)
    return Start(ready, 200 * MB, drained)


def outcome(
    scene: str, contestant: str, *, repeat: int = 0, begun: Start | None = None, flows: tuple[Steady, ...] = ()
) -> Outcome:
    return Outcome(scene, contestant, repeat, 5000, 0, begun, flows)


def missed(*outcomes: Outcome) -> list[str]:
    return [bar.name for bar in bars(outcomes) if not bar.passed]


def test_latencies_may_be_as_long_as_kube_schedulers_and_no_longer() -> None:
    theirs = outcome(FLOWS, SAMPLED, flows=(flow(150, p50=0.01, p99=0.2),))
    assert missed(theirs, outcome(FLOWS, BAYPLAN, flows=(flow(150, p50=0.01, p99=0.2),))) == []
    slower = outcome(FLOWS, BAYPLAN, flows=(flow(150, p50=0.011, p99=0.2),))
    assert missed(theirs, slower) == ["p50 at 150 pods/s no worse than kube-scheduler's"]


def test_each_rate_is_compared_with_the_same_rate_of_the_same_repeat() -> None:
    found = bars(
        [
            outcome(FLOWS, SAMPLED, repeat=0, flows=(flow(150, p99=0.1), flow(300, p99=5.0))),
            outcome(FLOWS, BAYPLAN, repeat=0, flows=(flow(150, p99=0.2), flow(300, p99=0.5))),
            outcome(FLOWS, BAYPLAN, repeat=1, flows=(flow(150, p99=0.01),)),
        ]
    )
    by_name = {bar.name: bar for bar in found}
    assert not by_name["p99 at 150 pods/s no worse than kube-scheduler's"].passed
    assert by_name["p99 at 300 pods/s no worse than kube-scheduler's"].found == "500 against 5000 ms"


@pytest.mark.parametrize(("seconds", "passes"), [(6.25, True), (6.3, False)])
def test_a_burst_is_bound_1_6_times_as_fast(seconds: float, passes: bool) -> None:
    theirs = outcome(FLOWS, SAMPLED, flows=(flow(0, all_bound=10.0),))
    ours = outcome(FLOWS, BAYPLAN, flows=(flow(0, all_bound=seconds),))
    assert (missed(theirs, ours) == []) is passes


@pytest.mark.parametrize(("seconds", "passes"), [(6.6, True), (6.7, False)])
def test_a_drain_with_events_is_1_5_times_as_fast(seconds: float, passes: bool) -> None:
    theirs = outcome(COLD, SAMPLED, begun=start(seconds=10.0))
    assert (missed(theirs, outcome(COLD, BAYPLAN, begun=start(seconds=seconds))) == []) is passes


def test_a_large_cluster_has_bars_of_its_own() -> None:
    assert missed(outcome(LARGE, BAYPLAN, begun=start(ready=20.0, megabytes=600))) == []
    assert missed(outcome(LARGE, BAYPLAN, begun=start(ready=20.1, megabytes=601))) == [
        "large: ready within 20 s",
        "large: at most 600 MB",
    ]


def test_nothing_is_claimed_of_what_did_not_run() -> None:
    assert bars([]) == []
    assert bars([outcome(FLOWS, BAYPLAN, flows=(flow(150),))]) == []


def test_an_outcome_says_what_its_start_and_each_flow_gave_and_what_went_wrong() -> None:
    found = Outcome(FLOWS, BAYPLAN, 0, 5000, 0, start(), (flow(150), flow(0)), "it ended")
    said = lines(found)
    expected = ("it ended", "1000 waiting", "150 pods/s", "burst")
    assert all(text in line for text, line in zip(expected, said, strict=True))


def test_the_scenes_are_those_of_the_document_and_shrink_together() -> None:
    whole = {each.name: each for each in scenes(1.0, 20.0)}
    assert (whole[LARGE].nodes, whole[LARGE].placed) == (15_000, 50_000)
    assert whole[COLD].waiting == 20_000
    assert list(whole[FLOWS].flows) == [(3000, 150.0), (6000, 300.0), (5000, 0.0)]
    assert [each.nodes for each in scenes(0.01, 20.0)] == [50, 50, 150]
