"""Leases that somebody edits by hand, and what everybody makes of them."""

import pytest
from tests.leaderelection.simulation import DURATION, EDITS, PERIOD, Network


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
@pytest.mark.parametrize("comes", ["before", "after"])
def test_a_lease_that_is_edited_after_a_renewal_never_has_two_leaders(cluster, leader, edit, comes):
    if comes == "before":
        cluster.contender("second").start()
        cluster.run(5)
    cluster.run_until(lambda: cluster.now - cluster.history[-1][0] < 0.02)
    # Its next renewal is refused, and found to be so, late.
    cluster.network = lambda each: Network(there=0.9, back=0.9) if each is leader else Network()
    edit(cluster)
    if comes == "after":
        cluster.contender("second").start()
    cluster.run(40)
    assert cluster.most_open == 1
    assert [each.leading for each in cluster.contenders].count(True) == 1


@pytest.mark.parametrize("second", ["shortened", "another holder, and short"])
def test_two_edits_with_a_renewal_between_that_nobody_saw_are_no_renewals(cluster, leader, standby, second):
    cluster.run_until(lambda: cluster.now - cluster.history[-1][0] < 0.02)
    cluster.run(PERIOD - 0.7)
    EDITS["shortened"](cluster)
    cluster.run_until(lambda: cluster.spec["leaseDurationSeconds"] == 15)
    standby.pause(0.3)
    EDITS[second](cluster)
    cluster.network = lambda each: Network(there=0.9, back=0.9) if each is leader else Network()
    cluster.run(20)
    assert cluster.most_open == 1


def test_a_lease_that_was_made_too_long_by_hand_is_shorter_again_when_its_holder_has_renewed_it_twice(
    cluster, leader, standby
):
    cluster.edit(leaseDurationSeconds=3600)
    cluster.run(3 * PERIOD + 1)
    leader.kill()
    assert cluster.run_until(lambda: standby.leading) < DURATION + 1


def test_a_lease_that_is_deleted_is_made_again_by_its_holder_and_not_taken_by_who_saw_it(cluster, leader, standby):
    cluster.delete()
    cluster.run(PERIOD + 1)
    assert leader.leading
    assert cluster.spec["holderIdentity"] == "first"
    assert not standby.leading
    assert cluster.most_open == 1


def test_a_lease_that_is_deleted_after_its_holder_died_is_taken_when_its_time_is_up(cluster, leader, standby):
    leader.kill()
    cluster.delete()
    assert DURATION - PERIOD - 1 < cluster.run_until(lambda: standby.leading) < DURATION + 1
    assert cluster.spec["holderIdentity"] == "second"


def test_transitions_begin_anew_after_the_last_one_that_a_lease_can_count(cluster, leader, standby):
    cluster.edit(leaseTransitions=2**31 - 1)
    cluster.run(PERIOD + 1)
    leader.stop()
    cluster.run_until(lambda: standby.leading)
    assert cluster.spec["leaseTransitions"] == 0
