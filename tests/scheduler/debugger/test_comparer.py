from hypothesis import given
from hypothesis import strategies as st
from tests.scheduler.debugger.dumps import compare

from bayplan.scheduler.cache_comparison import (
    ASSUMED,
    NODES,
    PENDING,
    PODS,
    REQUESTED,
    CacheComparison,
    Difference,
    Dump,
    lasting,
)

ON_N1 = ("default/p", "n1", 1000)


def dump(facts=None, **fields):
    return Dump(facts={kind: dict(known) for kind, known in (facts or {}).items()}, **fields)


facts = st.dictionaries(
    st.sampled_from([NODES, PODS, PENDING, "services"]),
    st.dictionaries(st.sampled_from("abc"), st.tuples(st.integers(0, 2)), max_size=3),
    max_size=4,
)


def test_equal_dumps_do_not_differ():
    both = {NODES: {"n1": ("uid", "7")}, PODS: {"u": ON_N1}}
    assert compare(dump(both), dump(both)) == []


def test_what_only_one_side_has_and_what_both_have_differently_is_told():
    ours, theirs = dump({NODES: {"a": (1,), "b": (1,)}}), dump({NODES: {"b": (2,), "c": (3,)}})
    assert {(d.key, d.held, d.listed) for d in compare(ours, theirs)} == {
        ("a", (1,), None),
        ("b", (1,), (2,)),
        ("c", None, (3,)),
    }


@given(facts, facts)
def test_exactly_the_objects_that_differ_are_told_once(ours, theirs):
    expected = {
        (kind, key)
        for kind in ours.keys() | theirs.keys()
        for key in ours.get(kind, {}).keys() | theirs.get(kind, {}).keys()
        if ours.get(kind, {}).get(key) != theirs.get(kind, {}).get(key)
    }
    found = [(each.kind, each.key) for each in compare(dump(ours), dump(theirs))]
    assert set(found) == expected
    assert len(found) == len(expected)


@given(facts, facts)
def test_it_is_the_same_the_other_way_round(ours, theirs):
    def swapped(each):
        return (each.kind, each.key, each.listed, each.held)

    there = {(d.kind, d.key, d.held, d.listed) for d in compare(dump(ours), dump(theirs))}
    assert {swapped(d) for d in compare(dump(theirs), dump(ours))} == there


def test_columns_that_are_not_the_sums_of_their_pods_differ_whatever_the_api_server_has():
    miscounted = dump({REQUESTED: {"n1": (2,), "n2": (1,)}}, sums={"n1": (1,), "n2": (1,)})
    assert compare(miscounted, dump()) == [Difference(REQUESTED, "n1", (2,), (1,))]


def test_an_assumed_pod_agrees_while_its_bind_is_under_way():
    ours = dump({PENDING: {"u": ("default/p", "5")}}, assumed={"u": ("default/p", "n1")}, in_flight={"u"})
    assert compare(ours, dump({PENDING: {"u": ("default/p", "5")}})) == []
    assert compare(ours, dump({PODS: {"u": ON_N1}})) == []


def test_an_assumed_pod_whose_bind_is_over_must_have_been_confirmed():
    ours = dump(assumed={"u": ("default/p", "n1")})
    assert compare(ours, dump({PODS: {"u": ON_N1}})) == [Difference(ASSUMED, "u", ("default/p", "n1"), ON_N1)]
    assert [each.kind for each in compare(ours, dump())] == [ASSUMED]
    waiting = compare(ours, dump({PENDING: {"u": ("default/p", "5")}}))
    assert {each.kind for each in waiting} == {ASSUMED, PENDING}


def test_an_assumed_pod_that_is_on_another_node_or_gone_differs_though_its_bind_is_under_way():
    ours = dump(assumed={"u": ("default/p", "n1")}, in_flight={"u"})
    assert [each.kind for each in compare(ours, dump({PODS: {"u": ("default/p", "n2", 1000)}}))] == [ASSUMED]
    assert [each.kind for each in compare(ours, dump())] == [ASSUMED]


def test_nothing_is_told_of_what_cannot_be_read():
    assert compare(dump({PODS: {"u": ON_N1}}), dump(uncertain={(PODS, "u")})) == []


def test_a_difference_lasts_if_the_same_is_held_at_the_second_look():
    stale = Difference(NODES, "n1", ("uid", "5"), ("uid", "6"))
    later = Difference(NODES, "n1", ("uid", "5"), ("uid", "9"))
    assert lasting([stale], [later]) == [later]


def test_a_difference_that_a_watch_was_about_to_tell_does_not_last():
    behind = Difference(NODES, "n1", ("uid", "5"), ("uid", "6"))
    behind_again = Difference(NODES, "n1", ("uid", "8"), ("uid", "9"))
    new = Difference(NODES, "n2", None, ("uid", "9"))
    assert lasting([behind], [behind_again, new]) == []


def test_what_is_missing_at_both_looks_lasts():
    missing = Difference(PODS, "u", None, ON_N1)
    assert lasting([missing], [missing]) == [missing]


def test_a_comparison_counts_by_kind():
    found = [Difference(NODES, name, None, ()) for name in "ab"] + [Difference(PODS, "u", None, ())]
    assert CacheComparison(found, {}).counts == {NODES: 2, PODS: 1}
