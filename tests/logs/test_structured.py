import logging
import math
from pathlib import Path

import pytest
from tests.logs.records import record

from bayplan.logs.formats import split


@pytest.mark.parametrize(
    ("template", "arguments", "message", "fields"),
    [
        ("told to stop", (), "told to stop", []),
        ("listed watch=%s objects=%d", ("nodes", 3), "listed", [("watch", "nodes"), ("objects", 3)]),
        ("listed seconds=%.3f", (1.23456,), "listed", [("seconds", 1.235)]),
        ("ended pause=%.0fs", (3.0,), "ended", [("pause", "3s")]),
        ("going on with %s kind=%s", ("none", "Pod"), "going on with none", [("kind", "Pod")]),
        ("100 %% of %d nodes node=%r", (3, "n1"), "100 % of 3 nodes", [("node", "n1")]),
        ("refused status=%d %s", (409, "Conflict"), "refused status=409 Conflict", []),
        ("%s", ("a=b c=d",), "a=b c=d", []),
        ("read path=%s known=%s", (Path("/x"), None), "read", [("path", "/x"), ("known", None)]),
        ("failed error=%s", (ValueError("no"),), "failed", [("error", "no")]),
        ("rate=%s then x=%d y=%g", (math.inf, True, math.nan), "rate=inf then", [("x", 1), ("y", "nan")]),
        ("waited seconds=%s", (math.inf,), "waited", [("seconds", "inf")]),
        ("a library's %(kind)s", ({"kind": "dictionary"},), "a library's dictionary", []),
        ("wide %*d x=%d", (5, 1, 2), "wide     1 x=2", []),
    ],
)
def test_a_template_is_its_message_and_its_keys(template, arguments, message, fields):
    assert split(record(template, *arguments)) == (message, fields)


def test_what_is_no_template_is_all_message():
    assert split(record(ValueError("as it is"))) == ("as it is", [])
    assert split(logging.LogRecord("x", 20, "p", 1, "100 % done x=%d", (), None)) == ("100 % done x=%d", [])
