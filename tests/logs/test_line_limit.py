from hypothesis import given
from hypothesis import strategies as st

from bayplan.logs.line_writer import LINES_PER_MINUTE, LineLimit


def test_a_place_writes_so_many_lines_in_a_minute_and_the_rest_is_counted():
    limit = LineLimit()
    written = [limit.admits("a", 10.0 + second / 10) for second in range(100)]
    assert sum(written) == LINES_PER_MINUTE
    assert written[:LINES_PER_MINUTE] == [True] * LINES_PER_MINUTE
    assert limit.due() == 70.0
    assert list(limit.left_out(69.9)) == []
    assert list(limit.left_out(70.0)) == [("a", 40)]
    assert limit.due() is None


def test_each_place_has_its_own():
    limit = LineLimit()
    assert all(limit.admits(place, 0.0) for place in "ab" for _ in range(LINES_PER_MINUTE))
    assert not limit.admits("a", 0.0)
    assert limit.admits("c", 0.0)


def test_after_its_minute_a_place_begins_anew():
    limit = LineLimit()
    assert [limit.admits("a", 0.0) for _ in range(LINES_PER_MINUTE)]
    assert limit.admits("a", 60.0)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 20)), max_size=400))
def test_every_line_is_written_or_counted_and_no_minute_has_more(steps):
    limit, now, written, counted = LineLimit(), 0.0, [], 0
    for place, pause in steps:
        now += pause / 10
        counted += sum(lines for _, lines in limit.left_out(now))
        if limit.admits(place, now):
            written.append((place, now))
    counted += sum(lines for _, lines in limit.left_out(now + 61))
    assert len(written) + counted == len(steps)
    for place, begun in written:
        within = [at for which, at in written if which == place and begun <= at < begun + 60]
        assert len(within) <= 2 * LINES_PER_MINUTE
