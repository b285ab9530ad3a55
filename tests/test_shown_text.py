import pytest

from bayplan.shown_text import counted, one_line, printable, shortened


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, façade, 節點", "plain, façade, 節點"),
        ("a\nb\x1b[2J\u202e", r"a\nb\x1b[2J\u202e"),
        ("half of a pair: \ud800", r"half of a pair: \ud800"),
    ],
)
def test_what_is_not_printable_is_escaped_and_the_rest_stays(text, shown):
    assert printable(text) == shown


def test_a_long_text_ends_in_dots_and_has_the_length_that_is_asked_for():
    assert shortened("1234567890", 10) == "1234567890"
    assert shortened("12345678901", 10) == "1234567..."


def test_a_text_of_many_lines_is_shown_on_one():
    assert one_line(" no\n\n\tsuch \x1b[2J pod\r\n", 100) == r"no such \x1b[2J pod"


@pytest.mark.parametrize("text", ["x" * 1000, "\x1b" * 1000, "x" * 19 + "\x1b", "x" * 21])
def test_a_line_has_at_most_the_length_that_is_asked_for_and_says_that_it_was_longer(text):
    line = one_line(text, 20)
    assert (len(line), line[-3:]) == (20, "...")


def test_a_line_of_just_the_length_is_whole():
    assert one_line("x" * 20, 20) == "x" * 20


@pytest.mark.parametrize(
    ("count", "nouns", "shown"),
    [
        (0, ["pod"], "0 pods"),
        (1, ["pod"], "1 pod"),
        (12_000, ["pod"], "12,000 pods"),
        (1, ["pod is", "pods are"], "1 pod is"),
        (2, ["pod is", "pods are"], "2 pods are"),
    ],
)
def test_a_count_has_its_noun_in_the_right_number(count, nouns, shown):
    assert counted(count, *nouns) == shown
