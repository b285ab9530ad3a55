import io
import logging
import threading

import pytest
from tests.clock import Clock
from tests.logs.records import Stalled, record, size_of, writer_to

from bayplan.logs.formats import V2
from bayplan.logs.line_writer import KEPT_BYTES, LINES_PER_MINUTE


@pytest.fixture
def stream():
    return io.StringIO()


@pytest.fixture
def writer(stream):
    writer = writer_to(stream)
    yield writer
    writer.close()


def test_before_the_start_lines_are_written_at_once(writer, stream):
    writer.handle(record("one"))
    assert stream.getvalue() == "one\n"


def test_after_the_start_a_thread_writes_them_in_order(writer, stream):
    writer.start()
    for number in range(1000):
        writer.handle(record("line %d", number, level=V2))
    writer.flush()
    assert stream.getvalue().splitlines() == [f"line {number}" for number in range(1000)]
    assert writer._bytes == 0


def test_closing_writes_what_was_taken(writer, stream):
    writer.start()
    writer.handle(record("last words"))
    writer.close()
    assert stream.getvalue() == "last words\n"


def test_lines_that_a_slow_reader_does_not_take_are_dropped_within_a_bound_in_bytes_and_counted():
    stream = Stalled()
    room = 20 * size_of("line 100")
    writer = writer_to(stream, kept_bytes=room)
    writer.start()
    for number in range(100, 200):
        writer.handle(record("line %d", number, level=V2))
        assert writer._bytes <= room
    stream.goes_on.set()
    writer.close()
    *kept, told = stream.getvalue().splitlines()
    assert kept == [f"line {number}" for number in range(100, 120)]
    assert told == "lines were dropped because standard error takes them too slowly lines=80"


def test_who_logs_never_waits_for_a_reader_that_stands_still():
    stream = Stalled()
    writer = writer_to(stream)
    writer.start()
    writer.handle(record("first"))
    assert stream.reached.wait(30)
    for _ in range(1000):
        writer.handle(record("x" * 100_000, level=V2))
    assert KEPT_BYTES - 200_000 < writer._bytes <= KEPT_BYTES
    stream.goes_on.set()
    writer.close()


def test_a_place_that_repeats_itself_is_cut_short_and_the_rest_is_counted(stream):
    clock = Clock(0.0)
    writer = writer_to(stream, clock=clock)
    for _ in range(500):
        writer.handle(record("bind in doubt", level=logging.WARNING))
    clock.now = 61.0
    writer.handle(record("bind in doubt", level=logging.WARNING))
    assert stream.getvalue().splitlines() == [
        *["bind in doubt"] * LINES_PER_MINUTE,
        f"lines like others were left out place=scheduler/bayplan.scene.py:7 lines={500 - LINES_PER_MINUTE}",
        "bind in doubt",
    ]


def test_what_was_left_out_is_told_although_nothing_else_is_logged(stream):
    clock, told = Clock(0.0), threading.Event()

    class Told(io.StringIO):
        def write(self, text):
            if "left out" in text:
                told.set()
            return super().write(text)

    writer = writer_to(Told(), clock=clock)
    writer.start()
    # The last of them is told when the minute is all but over, and the thread waits for what is left of it.
    for clock.now in (0.0, *[59.95] * LINES_PER_MINUTE):
        writer.handle(record("again"))
    clock.now = 60.0
    assert told.wait(30)
    writer.close()


def test_what_was_left_out_in_the_last_minute_is_told_at_the_end(stream):
    writer = writer_to(stream)
    writer.start()
    for _ in range(LINES_PER_MINUTE + 3):
        writer.handle(record("again"))
    writer.close()
    assert stream.getvalue().splitlines()[LINES_PER_MINUTE:] == [
        "lines like others were left out place=scheduler/bayplan.scene.py:7 lines=3"
    ]


def test_a_line_that_cannot_be_formatted_is_told_in_the_log_and_not_beside_it(writer, stream, capsys):
    writer.start()
    writer.handle(record("%d pods", "many"))
    writer.flush()
    assert "a line could not be formatted" in stream.getvalue()
    assert capsys.readouterr().err == ""


def test_lines_that_were_asked_for_are_all_written(writer, stream):
    for _ in range(500):
        writer.handle(record("bound", level=V2))
    assert len(stream.getvalue().splitlines()) == 500


@pytest.mark.parametrize("error", [BrokenPipeError(), OSError("disk full"), ValueError("closed")])
def test_a_log_that_cannot_be_written_stops_nothing(error):
    class Broken(io.StringIO):
        def write(self, text):
            raise error

    writer = writer_to(Broken())
    writer.handle(record("before"))
    writer.start()
    writer.handle(record("after"))
    writer.close()
    assert writer._bytes == 0


def test_a_line_may_be_logged_while_one_is_being_added(stream):
    writer = writer_to(stream)

    class Chatty:
        said = False

        def __str__(self):
            if not self.said:
                self.said = True
                writer.handle(record("inner", line=8))
            return "outer"

    writer.start()
    writer.handle(record("%s", Chatty()))
    writer.close()
    assert stream.getvalue().splitlines() == ["inner", "outer"]
