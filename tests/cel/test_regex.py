import re
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.cel.regex import MOST_STEPS, Regex
from bayplan.cel.regex_syntax import RegexError

PLACES = st.sampled_from(["^", "$", "\\b", "\\B"])
ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "\\d", "\\w", "(?:a|b)", "(?:ab|a)", "(?i:A)"])
REPEATED = st.tuples(ATOMS, st.sampled_from(["", "", "", "*", "+", "?", "*?", "+?", "{2}", "{1,2}"])).map("".join)
SEQUENCES = st.lists(REPEATED | PLACES, min_size=1, max_size=4).map("".join)
PATTERNS = st.lists(SEQUENCES, min_size=1, max_size=3).map("|".join)
# Python finds no \\B in an empty text, as of 3.14 it does.
TEXTS = st.text("ab1_ \n", min_size=1, max_size=12)


def python_pattern(pattern):
    # $ is the end of the text alone, and both engines have ASCII's classes.
    return re.compile(pattern.replace("$", "\\Z"), re.ASCII)


@given(PATTERNS, TEXTS)
def test_what_is_found_first_is_what_pythons_engine_finds(pattern, text):
    expected = python_pattern(pattern).search(text)
    spans = Regex(pattern).spans(text, 1)
    assert spans == ([expected.span()] if expected else [])
    assert Regex(pattern).found(text) == (expected is not None)


@pytest.mark.parametrize(
    "pattern", ["(a*)*b", "(a|a)*b", "(a+)+b", "(a?){200}a{200}b", "(.*)(.*)(.*)(.*)(.*)(.*)b", "(x+x+)+y"]
)
def test_what_another_engine_tries_for_ever_takes_a_step_a_character(pattern):
    assert not Regex(pattern).found("a" * 500)


def test_an_expression_too_large_is_refused():
    with pytest.raises(RegexError, match="expression too large"):
        Regex(f"(a{{1000}}){{{MOST_STEPS // 1000}}}")


def test_what_is_kept_of_an_expression_has_a_bound():
    found = Regex("(a|b|é|.){1,30}x")
    tracemalloc.start()
    for first in range(0x100, 0x900, 0x40):
        found.found("".join(chr(each) for each in range(first, first + 0x40)))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 10_000_000


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
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("\\pX", "invalid character class range: `\\pX`"),
    ],
)
def test_what_is_no_regular_expression_is_refused_in_gos_words(pattern, message):
    with pytest.raises(RegexError) as refused:
        Regex(pattern)
    assert str(refused.value) == f"error parsing regexp: {message}"
