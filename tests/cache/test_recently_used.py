from hypothesis import given
from hypothesis import strategies as st

from bayplan.cache.recently_used import RecentlyUsed, UsedOfLate


def test_a_lower_number_takes_effect_with_the_next_put():
    kept = RecentlyUsed(9)
    for key in range(9):
        kept.put(key, key)
    kept.keep = 2
    assert len(kept) == 9
    kept.put(9, 9)
    assert list(kept.items()) == [(8, 8), (9, 9)]


def test_what_is_dropped_is_gone_and_no_other():
    kept = RecentlyUsed(2)
    for key in "ab":
        kept.put(key, key)
    kept.drop("a")
    assert list(kept.items()) == [("b", "b")]


def test_to_look_at_a_value_is_no_use_of_it():
    kept = RecentlyUsed(2)
    for key in "ab":
        kept.put(key, key)
    assert (kept.peek("a"), kept.peek("c")) == ("a", None)
    kept.put("c", "c")
    assert kept.peek("a") is None


def test_nothing_is_kept_after_clear():
    kept = RecentlyUsed(2)
    kept.put("a", 1)
    kept.clear()
    assert (len(kept), kept.get("a")) == (0, None)


@given(st.integers(1, 4), st.lists(st.tuples(st.booleans(), st.integers(0, 5)), max_size=40))
def test_it_keeps_what_a_list_in_order_of_use_would(keep, steps):
    kept, used = RecentlyUsed(keep), []
    for puts, key in steps:
        if puts:
            kept.put(key, key)
        elif kept.get(key) is None:
            assert key not in used
            continue
        used = [*(each for each in used if each != key), key][-keep:]
    assert [key for key, _ in kept.items()] == used


def test_values_count_by_their_size_and_the_least_recently_used_make_room():
    kept = RecentlyUsed(10, lambda key, value: len(value))
    for key, size in (("a", 4), ("b", 4), ("c", 5)):
        kept.put(key, "x" * size)
    assert ([key for key, _ in kept.items()], kept.size) == (["b", "c"], 9)
    kept.put("b", "x")
    assert kept.size == 6
    kept.drop("c")
    assert kept.size == 1
    kept.clear()
    assert kept.size == 0


def test_a_value_larger_than_all_room_pushes_nobody_out():
    kept = RecentlyUsed(10, lambda key, value: len(value))
    kept.put("a", "x")
    assert kept.put("b", "x" * 11) == "x" * 11
    assert [key for key, _ in kept.items()] == ["a"]
    kept.put("a", "x" * 11)
    assert (len(kept), kept.size) == (0, 0)


def test_what_nobody_asked_for_since_the_last_release_is_let_go_of():
    kept = UsedOfLate(3)
    for key in "abcd":
        kept.put(key, [key])
    kept.release_unused()
    assert [key for key, _ in kept.items()] == ["b", "c", "d"]
    assert (kept.get("c"), kept.get("a")) == (["c"], None)
    kept.put("e", ["e"])
    kept.release_unused()
    assert [key for key, _ in kept.items()] == ["c", "e"]
    kept.release_unused()
    assert not kept
