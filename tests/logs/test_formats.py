import json
import logging
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.logs.records import raised, record

from bayplan.logs.formats import LONGEST_TEXT, V2, V10, JsonFormat, TextFormat

text, in_json = TextFormat(), JsonFormat()
STAMP = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}"
HOSTILE = "a\n2026-11-22 10:00:00,000 I bayplan.scheduler forged\r\x1b[31m\u202e\ud800"


def read(entry):
    return json.loads(in_json.format(entry))


def test_a_line_of_text_has_time_severity_logger_and_message():
    line = text.format(record("pod left out pod=%r error=%s", "shop/odd", "no", level=logging.WARNING))
    assert re.fullmatch(rf"{STAMP} W bayplan\.scene pod left out pod='shop/odd' error=no", line)


@pytest.mark.parametrize(
    ("level", "letter"),
    [(V10, "I"), (V2, "I"), (logging.INFO, "I"), (logging.WARNING, "W"), (logging.ERROR, "E"), (logging.CRITICAL, "C")],
)
def test_a_line_of_text_shows_its_severity_by_one_letter(level, letter):
    assert text.format(record("x", level=level)).split()[2] == letter


def test_a_line_of_json_has_component_bases_keys_and_those_of_the_line():
    found = read(record("bound pod=%r node=%s score=%d seconds=%.1f", "shop/web", "n1", 69, 1.25, level=V2))
    assert found.pop("ts") > 1.7e12, "milliseconds since the epoch"
    assert found == {
        "level": "info",
        "logger": "bayplan.scene",
        "caller": "scheduler/bayplan.scene.py:7",
        "msg": "bound",
        "v": 2,
        "pod": {"name": "web", "namespace": "shop"},
        "node": "n1",
        "score": 69,
        "seconds": 1.2,
    }


def test_an_error_in_json_has_no_verbosity_as_in_component_base():
    found = read(record("bind failed pod=%r error=%s", "shop/web", "refused", level=logging.ERROR))
    assert (found["level"], found["err"], "v" in found) == ("error", "refused", False)


@pytest.mark.parametrize("level", [logging.WARNING, logging.INFO, V2, V10])
def test_other_lines_in_json_say_from_which_verbosity_on_they_are_written(level):
    assert read(record("x", level=level))["v"] == max(logging.INFO - level, 0)


def test_a_key_of_a_line_never_takes_the_place_of_one_that_all_lines_have():
    assert read(record("really msg=%s level=%s", "forged", "forged"))["msg"] == "really"


def test_a_traceback_is_a_value_in_json_and_indented_in_text():
    line = record("failed pod=%r", "shop/web", level=logging.ERROR, error=raised(ValueError("spoilt\nE forged")))
    found = read(line)
    assert found["err"] == "spoilt\nE forged"
    assert found["stacktrace"].endswith("ValueError: spoilt\nE forged")
    first, *rest = text.format(line).split("\n")
    assert first.endswith("failed pod='shop/web'")
    assert rest[0] == "  Traceback (most recent call last):"
    assert all(each.startswith("  ") for each in rest)


@pytest.mark.parametrize("template", ["pod left out pod=%s", "%s", "pod left out pod=%r", "left out: %s pod=%s"])
def test_whatever_a_name_says_it_stays_on_its_line(template):
    entry = record(template, *[HOSTILE] * template.count("%"))
    line, as_json = text.format(entry), in_json.format(entry)
    assert line.isprintable()
    assert as_json.isprintable()


def test_what_is_escaped_can_still_be_read():
    assert text.format(record("x name=%s", HOSTILE)).endswith(
        r"x name=a\n2026-11-22 10:00:00,000 I bayplan.scheduler forged\r\x1b[31m\u202e\ud800"
    )
    assert read(record("x name=%s", HOSTILE))["name"] == HOSTILE


@given(st.text(), st.text())
def test_every_line_is_one_line_and_json_keeps_the_value(name, message):
    entry = record("pod left out name=%s", name)
    assert text.format(entry).isprintable()
    assert in_json.format(entry).isascii()
    assert read(record(message.replace("%", "%%"), level=V2))["v"] == 2
    assert len(text.format(record("%s", message)).splitlines()) == 1


@pytest.mark.parametrize(
    "secret",
    [
        "https://admin:topsecret@10.0.0.1:6443/api",
        "407, url='http://admin:topsecret@proxy:3128'",
        "Authorization: Bearer topsecret",
        "authorization=bearer topsecret",
        "token eyJhbGciOiJSUzI1NiJ9.eyJ0b3BzZWNyZXQiOjF9.topsecret_-",
    ],
)
def test_no_secret_reaches_a_line_wherever_it_stands(secret):
    for entry in (
        record(secret),
        record("%s", secret),
        record("failed error=%s", ValueError(secret)),
        record("failed error=%r", ValueError(secret)),
        record("failed", level=logging.ERROR, error=raised(ValueError(secret))),
    ):
        for line in (text.format(entry), in_json.format(entry)):
            assert "topsecret" not in line
            assert "[hidden]" in line


def test_what_only_looks_like_a_secret_is_shown():
    harmless = "image docker.io/web@sha256:ab of news@example.com eyJ"
    assert text.format(record("%s", harmless)).endswith(harmless)


def test_a_line_is_cut_that_is_longer_than_a_container_runtime_takes():
    longest = 2 * LONGEST_TEXT
    assert len(text.format(record("x y=%s", "z" * 10 * LONGEST_TEXT))) < longest
    cut = in_json.format(record("x y=%s", "z" * 10 * LONGEST_TEXT))
    assert len(cut) < longest
    assert json.loads(cut)["y"].endswith(f"... ({10 * LONGEST_TEXT} characters)")
