import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bayplan.cache.change_log import ChangeLog, EntryLog, KeyLog, together


def rows_since(log, position):
    found = log.since(position)
    return None if found is None else found.tolist()


def test_a_reader_that_fell_too_far_behind_must_start_over():
    log = ChangeLog(keep=2)
    start = log.position
    for row in range(5):
        log.append(row)
    assert rows_since(log, start) is None
    assert rows_since(log, log.position - 3) == [2, 3, 4]


@given(st.lists(st.integers(0, 5), max_size=60), st.integers(1, 8), st.data())
def test_whatever_is_dropped_a_reader_is_told_all_or_to_start_over(rows, keep, data):
    log = ChangeLog(keep=keep)
    for row in rows:
        log.append(row)
    assert log.position == len(rows)
    place = data.draw(st.integers(0, len(rows)))
    told = log.since(place)
    assert told is not None or len(rows) - place > keep
    if told is not None:
        assert told.tolist() == list(dict.fromkeys(rows[place:]))


def test_a_reader_gets_each_key_that_changed_since_it_looked_once():
    log = KeyLog()
    log.append("a")
    seen = log.position
    assert log.since(seen) == []
    for key in ("b", "a", "b"):
        log.append(key)
    assert log.since(seen) == ["b", "a"]
    assert log.since(0) == ["a", "b"]


def test_a_reader_of_keys_that_stayed_away_too_long_is_told_so():
    log = KeyLog()
    for number in range(10_000):
        log.append(str(number))
    assert log.position == 10_000
    assert log.since(0) is None
    assert log.since(9_998) == ["9998", "9999"]


@given(st.lists(st.integers(0, 6), max_size=60), st.integers(1, 12), st.data())
def test_a_log_of_entries_that_differ_in_size_keeps_what_has_room_and_tells_all_or_to_start_over(sizes, keep, data):
    log = EntryLog(keep, lambda size: size)
    for size in sizes:
        log.append(size)
        assert log.size <= 2 * keep
    assert log.position == len(sizes)
    place = data.draw(st.integers(0, len(sizes)))
    told = log.since(place)
    if told is None:
        assert sum(sizes[place:]) > keep
    else:
        assert told == sizes[place:]
    if sizes and sizes[-1] > keep:
        assert log.since(len(sizes) - 1) is None


@given(st.lists(st.lists(st.integers(0, 9)), min_size=1))
def test_rows_of_several_changes_are_each_there_once_in_order(changes):
    found = together(*[np.array(rows, dtype=np.intp) for rows in changes])
    assert found.dtype == np.intp
    assert found.tolist() == sorted({row for rows in changes for row in rows})
