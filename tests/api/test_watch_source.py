import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.api import watch_source
from bayplan.api.watch_source import BrokenStreamError, LineSplitter


@given(st.lists(st.binary(max_size=8).map(lambda line: line.replace(b"\n", b"")), max_size=8), st.data())
def test_lines_are_the_same_however_the_stream_is_cut(lines, data):
    stream = b"".join(line + b"\n" for line in lines) + b"unfinished"
    splitter = LineSplitter([])
    found = []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found += splitter.feed(stream[:size])
        stream = stream[size:]
    assert found == [line for line in lines if line]


def test_a_line_without_end_is_a_broken_stream(monkeypatch):
    monkeypatch.setattr(watch_source, "MAX_LINE_BYTES", 10)
    splitter = LineSplitter([])
    assert splitter.feed(b"12345\n123456") == [b"12345"]
    with pytest.raises(BrokenStreamError):
        splitter.feed(b"78901")
