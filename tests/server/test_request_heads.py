from http import HTTPStatus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.server.request_heads import HEAD_BYTES, HeadRefusedError, RequestHeads, target_of

HEAD = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"


def given_out(*pieces):
    """All heads of what is read piece by piece, and the status that ends it or None."""
    heads, out = RequestHeads(), []
    for piece in pieces:
        heads.add(piece)
        try:
            while (head := heads.take()) is not None:
                out.append(head)
        except HeadRefusedError as refusal:
            return out, refusal.status
    return out, None


def of_length(length):
    """A head of that many bytes."""
    return HEAD[:-4] + b"x" * (length - len(HEAD)) + HEAD[-4:]


def test_heads_that_came_together_are_given_out_one_by_one():
    assert given_out(HEAD * 3) == ([HEAD] * 3, None)


@given(st.lists(st.integers(1, 3 * len(HEAD))))
def test_how_it_was_cut_on_the_way_changes_nothing(cuts):
    sent = b"\r\n" + HEAD + HEAD.replace(b"\r\n", b"\n") + HEAD[:-2]
    pieces, at = [], 0
    for cut in sorted({min(each, len(sent)) for each in cuts} | {len(sent)}):
        pieces.append(sent[at:cut])
        at = cut
    assert given_out(*pieces) == ([HEAD, HEAD.replace(b"\r\n", b"\n")], None)


def test_a_head_has_a_longest_length():
    assert given_out(of_length(HEAD_BYTES)) == ([of_length(HEAD_BYTES)], None)
    assert given_out(of_length(HEAD_BYTES + 1)) == ([], HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)


@pytest.mark.parametrize("sent", [b"\r\n", b"\n", b"x", HEAD[:-2]], ids=["lines", "line feeds", "no end", "one line"])
def test_what_never_ends_is_refused_when_it_is_longer(sent):
    heads, added = RequestHeads(), 0
    while added + len(sent) <= HEAD_BYTES:
        heads.add(sent)
        added += len(sent)
        assert heads.take() is None
        assert len(heads) <= added
    heads.add(sent)
    with pytest.raises(HeadRefusedError):
        heads.take()


def test_empty_lines_count_for_the_head_after_them():
    assert given_out(b"\r\n" * (HEAD_BYTES // 2), HEAD) == ([], HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
    assert given_out(*([b"\r\n" * 1000 + HEAD] * 100)) == ([HEAD] * 100, None)


@pytest.mark.parametrize(
    "field",
    [
        b"Content-Length: 1",
        b"content-length:99999999999",
        b"Content-Length : 5",
        b"Content-Length: 0\r\nContent-Length: 5",
        b"Transfer-Encoding: chunked",
        b"TRANSFER-ENCODING:x",
    ],
)
def test_a_body_is_refused_before_it_is_read(field):
    head = b"POST /livez HTTP/1.1\r\n" + field + b"\r\n\r\n"
    assert given_out(HEAD + head + b"x" * 10) == ([HEAD], HTTPStatus.REQUEST_ENTITY_TOO_LARGE)


def test_a_body_of_no_bytes_is_none():
    head = b"POST /livez HTTP/1.1\r\nContent-Length: 0\r\n\r\n"
    assert given_out(head) == ([head], None)


@pytest.mark.parametrize(
    ("head", "target"),
    [(HEAD, b"/livez"), (b"GET /a?b=c HTTP/1.1\n\n", b"/a?b=c"), (b"GET\r\n\r\n", b""), (b"\x16\x03\r\n\r\n", b"")],
)
def test_what_a_head_asks_for(head, target):
    assert target_of(head) == target


@given(st.binary())
def test_anything_has_a_target(head):
    assert target_of(head) in head
