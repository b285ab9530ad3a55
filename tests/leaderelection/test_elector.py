import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.leaderelection.simulation import DEADLINE, DURATION, EDITS, LONGEST_LOOK, NETWORK, PERIOD, Cluster, Network

from bayplan.leaderelection.elector import JITTER_FACTOR, LeaseTiming


def test_a_lease_that_is_not_there_is_created_and_held(cluster, leader):
    metadata = cluster.document["metadata"]
    assert (metadata["namespace"], metadata["name"], metadata["resourceVersion"]) == ("kube-system", "bayplan", "1")
    assert cluster.spec == {
        "holderIdentity": "first",
        "leaseDurationSeconds": 15,
        "acquireTime": cluster.spec["renewTime"],
        "renewTime": cluster.spec["renewTime"],
        "leaseTransitions": 0,
    }
    assert leader.said == ["became leader"]
    assert leader.seen == ["first"]


def test_the_leader_renews_once_a_period_by_one_request(cluster, leader):
    acquired = cluster.spec["acquireTime"]
    before = leader.sent["Update"]
    cluster.run(60)
    assert 28 <= leader.sent["Update"] - before <= 30
    assert leader.sent["Read"] == 1
    assert cluster.spec["acquireTime"] == acquired < cluster.spec["renewTime"]
    assert cluster.spec["leaseTransitions"] == 0
    assert leader.elector.slow_paths == 0


def test_a_standby_waits_as_long_as_the_leader_renews(cluster, leader, standby):
    cluster.run(3600)
    assert not standby.leading
    assert standby.sent.keys() == {"Read"}
    assert standby.seen == ["first"]


def test_a_standby_leads_when_it_has_seen_no_renewal_for_the_leases_duration(cluster, leader, standby):
    renewed = cluster.history[-1][0]
    leader.kill()
    cluster.run_until(lambda: standby.leading)
    assert DURATION <= cluster.now - renewed <= DURATION + LONGEST_LOOK + NETWORK
    assert (cluster.spec["holderIdentity"], cluster.spec["leaseTransitions"]) == ("second", 1)
    assert cluster.spec["acquireTime"] == cluster.spec["renewTime"]
    assert cluster.most_open == 1


@pytest.mark.parametrize("killed_after", [0.0, 0.7, 1.9])
def test_after_a_kill_the_next_leads_within_16_seconds(cluster, leader, standby, killed_after):
    cluster.run_until(lambda: cluster.now - cluster.history[-1][0] < 0.02)
    cluster.run(killed_after)
    leader.kill()
    assert cluster.run_until(lambda: standby.leading) < 16


def test_a_leader_that_is_told_to_stop_lets_the_standby_lead_at_once(cluster, leader, standby):
    leader.stop()
    assert not leader.gate.is_open
    assert cluster.run_until(lambda: standby.leading) <= LONGEST_LOOK + NETWORK
    assert leader.ended
    assert leader.lost is None
    assert leader.said == ["became leader", "stopped leading"]
    assert cluster.history[-2][1] == ""
    assert cluster.spec["leaseTransitions"] == 1


def test_what_is_released_says_so_in_upstreams_way(cluster, leader):
    leader.stop()
    cluster.run(1)
    assert (cluster.spec["holderIdentity"], cluster.spec["leaseDurationSeconds"]) == ("", 1)
    assert cluster.spec["renewTime"] == cluster.spec["acquireTime"]


def test_a_release_outlasts_a_renewal_of_which_the_answer_was_not_awaited(cluster, leader):
    cluster.network = lambda _: Network(back=0.2)
    cluster.run_until(lambda: cluster.now - cluster.history[-1][0] < 0.02)
    leader.stop()
    cluster.run(2)
    assert cluster.spec["holderIdentity"] == ""


def test_a_release_that_fails_is_given_up_after_the_time_it_has(cluster, leader):
    cluster.is_away = True
    leader.stop()
    cluster.run(1.2)
    assert leader.ended
    assert cluster.spec["holderIdentity"] == "first"


def test_a_release_is_sent_again_when_the_connection_that_took_it_is_dead(cluster, leader, standby):
    lost = iter(["request"])
    cluster.network = lambda each: Network(lost=next(lost, "") if each is leader else "")
    leader.stop(6.0)
    assert cluster.run_until(lambda: standby.leading) < 6.0


def test_a_slow_api_server_hears_of_the_release_before_anything_else(cluster, leader, standby):
    cluster.network = lambda each: Network(there=1.2, back=1.2) if each is leader else Network()
    leader.stop(6.0)
    assert cluster.run_until(lambda: standby.leading) < 1.2 + LONGEST_LOOK + NETWORK
    assert leader.said == ["became leader"]
    cluster.run(3)
    assert leader.said == ["became leader", "stopped leading"]
    assert leader.ended


def test_since_when_a_free_lease_is_refused_is_known_until_it_is_taken_or_another_holds_it(cluster):
    contender = cluster.contender("first")
    cluster.make_by_hand(holderIdentity="", leaseDurationSeconds=1, acquireTime="now", renewTime="now")
    cluster.refuses_writes = True
    contender.start()
    cluster.run(30)
    assert contender.elector.refused_since == pytest.approx(contender.clock() - 30, abs=1)
    cluster.edit(holderIdentity="another", leaseDurationSeconds=15)
    cluster.run(2)
    assert contender.elector.refused_since is None
    cluster.run(20)
    assert contender.elector.refused_since is not None
    cluster.refuses_writes = False
    cluster.run(2)
    assert contender.leading
    assert contender.elector.refused_since is None


def test_a_standby_that_is_told_to_stop_writes_nothing(cluster, leader, standby):
    standby.stop()
    cluster.run(1)
    assert standby.ended
    assert standby.sent.keys() == {"Read"}
    assert standby.said == []
    assert leader.leading


def test_a_renewal_that_is_refused_because_the_object_changed_reads_it_first_and_keeps_what_is_others(cluster, leader):
    cluster.label(team="a")
    cluster.run(PERIOD + 1)
    assert leader.leading
    assert leader.elector.slow_paths == 1
    assert cluster.document["metadata"]["labels"]["team"] == "a"
    assert cluster.now - cluster.history[-1][0] < PERIOD + 1


def test_the_gate_closes_when_the_deadline_after_the_last_renewal_has_passed(cluster, leader):
    cluster.run_until(lambda: cluster.now - cluster.history[-1][0] < 0.02)
    sent = leader.elector.renewed_at
    cluster.is_away = True
    cluster.run_until(lambda: not leader.gate.is_open)
    assert leader.clock() - sent == pytest.approx(DEADLINE, abs=0.011)
    cluster.run_until(lambda: leader.ended, seconds=1)
    assert leader.lost.startswith("it was not renewed within 10 s: no answer in ")
    assert leader.said == ["became leader", "stopped leading"]


def test_a_leader_that_lost_says_what_its_last_try_came_to_and_not_that_its_time_was_up(cluster, leader):
    cluster.refuses_writes = True
    before = leader.sent["Update"]
    cluster.run_until(lambda: leader.sent["Update"] > before)
    leader.pause(DEADLINE)
    cluster.run_until(lambda: leader.ended)
    assert leader.lost == "it was not renewed within 10 s: status 400: BadRequest"


def test_an_api_server_away_for_less_than_the_deadline_costs_nothing(cluster, leader):
    cluster.is_away = True
    cluster.run(6)
    cluster.is_away = False
    cluster.run(60)
    assert leader.leading
    assert leader.gate.is_open


def test_a_renewal_counts_from_when_it_was_sent_not_from_its_answer(cluster, leader):
    cluster.network = lambda _: Network(there=0.1, back=3.0)
    cluster.run(8)
    cluster.is_away = True
    cluster.run_until(lambda: not leader.gate.is_open)
    taken = cluster.history[-1][0]
    assert cluster.now - taken == pytest.approx(DEADLINE - 0.1, abs=0.011)


def test_a_renewal_of_which_the_answer_is_lost_is_found_by_reading(cluster, leader):
    lost = iter(["answer"])
    cluster.network = lambda _: Network(lost=next(lost, ""))
    cluster.run(20)
    assert leader.leading
    assert leader.elector.slow_paths == 1


def test_an_acquisition_of_which_the_answer_is_lost_is_found_by_reading(cluster):
    lost = iter(["", "answer"])
    cluster.network = lambda _: Network(lost=next(lost, ""))
    contender = cluster.contender("first").start()
    cluster.run_until(lambda: contender.leading, seconds=10)
    assert cluster.spec["leaseTransitions"] == 0


@pytest.mark.parametrize("holder", ["somebody", ""])
def test_a_leader_whose_lease_is_taken_by_hand_stops_at_its_next_renewal_and_does_not_take_it_back(
    cluster, leader, standby, holder
):
    cluster.edit(holderIdentity=holder)
    cluster.run(PERIOD + 1)
    assert leader.ended
    assert leader.lost == f"{holder!r} holds it"
    assert not leader.gate.is_open
    assert not standby.leading
    assert cluster.run_until(lambda: standby.leading) > DURATION - PERIOD - 2
    assert cluster.most_open == 1


def test_a_process_that_was_stopped_finds_its_gate_closed_and_ends(cluster, leader, standby):
    leader.pause(30)
    stopped = cluster.now
    cluster.run_until(lambda: standby.leading)
    assert cluster.now - stopped < 16
    cluster.run(30)
    assert leader.ended
    assert leader.lost is not None
    assert cluster.most_open == 1
    assert cluster.spec["holderIdentity"] == "second"


def test_a_standby_that_was_stopped_does_not_take_a_lease_that_was_renewed_meanwhile(cluster, leader, standby):
    standby.pause(100)
    cluster.run(200)
    assert leader.leading
    assert not standby.leading


def test_a_contender_that_was_stopped_until_its_acquisition_had_run_out_does_not_lead_by_it(cluster):
    contender = cluster.contender("first").start()
    cluster.run(0.012)  # The answer is on its way.
    contender.pause(12)
    cluster.run(12.01)
    assert contender.said == []
    assert not contender.gate.is_open
    cluster.run(5)
    assert contender.leading
    assert contender.gate.is_open


@pytest.mark.parametrize("ahead", [-86400.0, 86400.0])
def test_calendars_that_differ_decide_nothing(cluster, leader, ahead):
    other = cluster.contender("second", ahead=ahead).start()
    cluster.run(120)
    assert leader.leading
    assert not other.leading


def test_a_third_goes_on_waiting_when_the_second_was_faster(cluster, leader, standby):
    third = cluster.contender("third", luck=0.9).start()
    leader.stop()
    cluster.run(60)
    assert [standby.leading, third.leading].count(True) == 1
    assert cluster.most_open == 1


def test_pauses_differ_by_chance_up_to_upstreams_factor(cluster, leader):
    lucky, unlucky = cluster.contender("lucky", luck=0.0).start(), cluster.contender("unlucky", luck=1.0).start()
    cluster.run(100)
    assert lucky.sent["Read"] / unlucky.sent["Read"] == pytest.approx(1 + JITTER_FACTOR, rel=0.05)


SOME_EDITS = [EDITS["emptied"], EDITS["shortened"], EDITS["another holder, and short"]]

faults = st.lists(
    st.tuples(
        st.floats(0, 120),
        st.integers(0, 2),
        st.sampled_from(["pause", "kill", "stop", "start", "away", "back", "edit"]),
        st.floats(0.1, 40),
    ),
    max_size=12,
)
networks = st.tuples(st.floats(0, 4), st.floats(0, 4), st.sampled_from(["", "", "", "request", "answer"]))


@given(
    rates=st.lists(st.floats(0.85, 1.15), min_size=3, max_size=3),
    events=faults,
    fates=st.lists(networks, max_size=40),
    luck=st.floats(0, 1),
)
@settings(max_examples=300, deadline=None)
def test_never_are_two_gates_open_at_once_and_in_the_end_one_is(rates, events, fates, luck):
    # The fastest clock runs 1.35 times as fast as the slowest: less than 15 / 10.
    cluster = Cluster()
    fate = iter(fates)
    cluster.network = lambda _: Network(*next(fate, (0.005, 0.005, "")))
    contenders = [cluster.contender(f"c{number}", rate=rate, luck=luck) for number, rate in enumerate(rates)]
    for contender in contenders:
        contender.start()
    # A process that is started anew comes with another name.
    for number, (at, which, what, seconds) in enumerate(events):

        def happen(which=which, what=what, seconds=seconds, number=number):
            if what == "start":
                cluster.contender(f"new-{number}", rate=rates[which], luck=luck).start()
            elif what in {"away", "back"}:
                cluster.is_away = what == "away"
            elif what == "pause":
                contenders[which].pause(seconds)
            elif what == "edit" and cluster.document is not None:
                SOME_EDITS[which](cluster)
            elif what == "kill":
                contenders[which].kill()
            else:
                contenders[which].stop()

        cluster.at(at, happen)
    cluster.run(170)
    assert cluster.most_open <= 1
    cluster.is_away = False
    fate = iter(())
    cluster.contender("last", luck=luck).start()
    cluster.run_until(lambda: any(each.gate.is_open for each in cluster.contenders), seconds=60)
    assert cluster.most_open <= 1


def test_a_clock_faster_than_the_bound_is_what_the_bound_is_for():
    """A standby whose clock runs twice as fast takes the Lease from a leader that still believes it has it."""
    cluster = Cluster()
    cluster.contender("slow", rate=1.0).start()
    cluster.run(1)
    cluster.contender("fast", rate=2.0).start()
    slow = cluster.contenders[0]
    cluster.network = lambda each: Network(lost="request" if each is slow else "")
    cluster.run(40)
    assert cluster.most_open == 2


def test_other_durations_are_kept(cluster):
    timing = LeaseTiming(lease_duration=6.0, renew_deadline=4.0, retry_period=0.5)
    leader = cluster.contender("first", timing=timing).start()
    other = cluster.contender("second", timing=timing).start()
    cluster.run(20)
    assert cluster.spec["leaseDurationSeconds"] == 6
    leader.kill()
    assert 5 < cluster.run_until(lambda: other.leading) < 7
