import msgspec
from hypothesis import given
from hypothesis import strategies as st

from bayplan.api.claim_objects import AllocationResult
from bayplan.devices.allocated_state import AllocatedState

POOL = ("gpu.example.com", "n1")


def allocation(*devices, **fields):
    results = [{"driver": POOL[0], "pool": POOL[1], "device": each, **fields} for each in devices]
    return msgspec.convert({"devices": {"results": results}}, AllocationResult)


def share(device, amount, share_id="s"):
    return allocation(device, shareID=share_id, consumedCapacity={"memory": amount})


def held(state):
    return {name for name, usage in state.usage(POOL).items() if usage.holders}


def test_a_device_is_taken_until_the_last_claim_that_names_it_lets_go():
    state = AllocatedState()
    state.observe("a", allocation("gpu-0"))
    state.observe("b", allocation("gpu-0"))
    state.observe("a", None)
    assert held(state) == {"gpu-0"}
    state.observe("b", None)
    assert held(state) == set()


def test_a_claim_in_flight_counts_once_and_goes_before_what_was_observed():
    state = AllocatedState()
    state.mark_in_flight("a", share("gpu-0", "2Gi"))
    state.observe("a", share("gpu-0", "2Gi"))
    assert state.usage(POOL)["gpu-0"].consumed == {"memory": 2 * 2**30 * 10**9}
    state.clear_in_flight("a")
    assert state.usage(POOL)["gpu-0"].shares == 1


def test_shares_are_summed_and_hold_no_device_whole():
    state = AllocatedState()
    state.observe("a", share("gpu-0", "1500m", "x"))
    state.observe("b", share("gpu-0", "1", "y"))
    usage = state.usage(POOL)["gpu-0"]
    assert (usage.holders, usage.shares, usage.consumed) == (0, 2, {"memory": 2_500_000_000})


def test_a_share_that_does_not_say_how_much_still_counts_as_one():
    state = AllocatedState()
    state.observe("a", allocation("gpu-0", shareID="x"))
    state.observe("b", share("gpu-1", "much"))
    assert [state.usage(POOL)[name].shares for name in ("gpu-0", "gpu-1")] == [1, 1]


def test_admin_access_takes_nothing():
    state = AllocatedState()
    state.observe("a", allocation("gpu-0", adminAccess=True))
    assert not state.usage(POOL)


def test_the_version_of_a_pool_changes_with_its_usage_alone():
    state = AllocatedState()
    assert state.version(POOL) == 0
    state.observe("a", allocation("gpu-0"))
    first = state.version(POOL)
    state.observe("b", None)
    assert state.version(POOL) == first != 0
    state.observe("b", allocation("gpu-1"))
    assert state.version(POOL) not in {0, first}


events = st.tuples(
    st.sampled_from("abc"),
    st.sampled_from(("observe", "mark", "clear")),
    st.none() | st.lists(st.sampled_from(("gpu-0", "gpu-1")), max_size=3) | st.sampled_from(("1Gi", "2")),
)


@given(st.lists(events, max_size=20))
def test_after_any_events_it_is_as_if_only_what_holds_now_had_been_told_and_nothing_of_the_rest_is_kept(history):
    state, observed, in_flight = AllocatedState(), {}, {}
    for uid, what, found in history:
        given_now = None if found is None else share("gpu-0", found) if isinstance(found, str) else allocation(*found)
        if what == "observe":
            state.observe(uid, given_now)
            observed[uid] = given_now
        elif what == "mark" and given_now is not None:
            state.mark_in_flight(uid, given_now)
            in_flight[uid] = given_now
        elif what == "clear":
            state.clear_in_flight(uid)
            in_flight.pop(uid, None)
    fresh = AllocatedState()
    for uid in "abc":
        fresh.observe(uid, in_flight.get(uid) or observed.get(uid))
    assert {n: u.key for n, u in state.usage(POOL).items()} == {n: u.key for n, u in fresh.usage(POOL).items()}
    for uid in "abc":
        state.observe(uid, None)
        state.clear_in_flight(uid)
    assert state.size == 0
