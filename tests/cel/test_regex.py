"""Regular expressions of selectors: what they find, and that hostile ones hold up nothing."""

import re
from pathlib import Path
from resource import getpagesize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.cel.errors import EvaluationError
from bayplan.cel.selector import Device, Selector

PLACES = st.sampled_from(["^", "$", "\\b", "\\B"])
ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "\\d", "\\w", "(?:a|b)", "(?:ab|a)", "(?i:A)"])
REPEATED = st.tuples(ATOMS, st.sampled_from(["", "", "", "*", "+", "?", "*?", "+?", "{2}", "{1,2}"])).map("".join)
SEQUENCES = st.lists(REPEATED | PLACES, min_size=1, max_size=4).map("".join)
PATTERNS = st.lists(SEQUENCES, min_size=1, max_size=3).map("|".join)
# Python finds no \\B in an empty text, as of 3.14 it does.
TEXTS = st.text("ab1_ é\n", min_size=1, max_size=12)

TEXT = 'device.attributes["d"].text'
PATTERN = 'device.attributes["d"].pattern'


def holds(expression, text, pattern=""):
    device = Device("d", {"text": text, "pattern": pattern})
    return Selector(f"device.attributes['d'].text{expression}").matches(device)


def python_pattern(pattern):
    # $ is the end of the text alone, and both engines have ASCII's classes.
    return re.compile(pattern.replace("$", "\\Z"), re.ASCII)


@given(PATTERNS, TEXTS)
def test_what_is_found_first_is_what_pythons_engine_finds(pattern, text):
    found = python_pattern(pattern).search(text)
    assert holds(f".matches({PATTERN})", text, pattern) == (found is not None)
    device = Device("d", {"text": text, "pattern": pattern, "found": found.group() if found else ""})
    assert Selector(f'{TEXT}.find({PATTERN}) == device.attributes["d"].found').matches(device)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("findAll('a*')", ["aa", "", "a", ""]),
        ("findAll('a+')", ["aa", "a"]),
        ("findAll('a+', 1)", ["aa"]),
        ("findAll('a+', 0)", []),
        ("findAll('x')", []),
        ("findAll('é')", ["é"]),
    ],
)
def test_all_matches_are_those_that_gos_package_finds(call, expected):
    assert holds(f".{call} == {expected}", "aaébab")


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("aéa", "\\B", []),
        ("aé", "\\B", [""]),
        ("日本", "\\B", ["", "", ""]),
        ("aéb", "\\B|b", ["b"]),
        ("éé", "\\B|é", ["", "", ""]),
    ],
)
def test_nothing_is_found_within_a_character(text, pattern, expected):
    device = Device("d", {"text": text, "pattern": pattern, "found": expected})
    assert Selector(f'{TEXT}.findAll({PATTERN}) == device.attributes["d"].found').matches(device)
    assert holds(f".matches({PATTERN})", text, pattern) == bool(expected)


@pytest.mark.parametrize(
    "pattern", ["(a*)*b", "(a|a)*b", "(a+)+b", "(a?){200}a{200}b", "(.*)(.*)(.*)(.*)(.*)(.*)b", "(x+x+)+y"]
)
def test_what_another_engine_tries_for_ever_takes_a_step_a_character(pattern):
    assert not holds(f".matches({PATTERN})", "a" * 500, pattern)


def test_what_is_kept_of_many_expressions_has_a_bound():
    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * getpagesize()

    text = "".join(chr(each) for each in range(0x100, 0x900, 7))
    before = resident()
    for number in range(400):
        holds(f".matches({PATTERN})", text, f"(a|b|é|.){{1,30}}[^x]{{0,20}}x{number}")
    assert resident() - before < 100_000_000


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(a", "missing closing ): `(a`"),
        ("a)", "unexpected ): `a)`"),
        ("[a", "missing closing ]: `[a`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a{2,1}", "invalid repeat count: `{2,1}`"),
        ("[b-a]", "invalid character class range: `b-a`"),
        ("\\", "trailing backslash at end of expression: ``"),
        ("\\y", "invalid escape sequence: `\\y`"),
        ("\\C", "invalid escape sequence: `\\C`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("\\pX", "invalid character class range: `\\pX`"),
    ],
)
def test_what_is_no_regular_expression_is_refused_in_gos_words(pattern, message):
    with pytest.raises(EvaluationError) as refused:
        holds(f".matches({PATTERN})", "a", pattern)
    assert str(refused.value) == f"error parsing regexp: {message}"


def test_a_letter_behind_a_backslash_that_is_text_is_no_escape():
    assert holds(f".matches({PATTERN})", "\\C", "^\\\\C$")
    assert holds(f".matches({PATTERN})", "\\C", "^\\Q\\C\\E$")


def test_an_expression_too_large_is_refused():
    with pytest.raises(EvaluationError, match="error parsing regexp: expression too large"):
        holds(f".matches({PATTERN})", "a", "[^a-f]{1000}" * 20)
