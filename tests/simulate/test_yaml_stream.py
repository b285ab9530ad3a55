import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.simulate import yaml_stream
from bayplan.simulate.yaml_stream import YAMLStreamError, yaml_documents


def documents(text):
    return list(yaml_documents(text))


def test_documents_keep_their_numbers_and_empty_ones_are_left_out():
    assert documents("a: 1\n---\n---\n# only a comment\n---\nb: [x, 2.5, true, null]\n") == [
        (1, {"a": 1}),
        (4, {"b": ["x", 2.5, True, None]}),
    ]


def test_dates_stay_texts():
    assert documents("when: 2026-01-01T00:00:00Z\nday: 2026-01-01") == [
        (1, {"when": "2026-01-01T00:00:00Z", "day": "2026-01-01"})
    ]


def test_quoted_scalars_stay_texts():
    assert documents("""a: "1"\nb: 'true'\n""") == [(1, {"a": "1", "b": "true"})]


def test_aliases_and_merges_mean_what_they_stand_for():
    text = "base: &base {a: 1, b: 2}\nother:\n  <<: *base\n  b: 3\nlist: [*base]\n"
    assert documents(text) == [
        (1, {"base": {"a": 1, "b": 2}, "other": {"a": 1, "b": 3}, "list": [{"a": 1, "b": 2}]}),
    ]


def test_of_merged_mappings_the_first_wins():
    assert documents("a: &a {x: 1}\nb: &b {x: 2, y: 2}\nc: {<<: [*a, *b]}")[0][1]["c"] == {"x": 1, "y": 2}


def test_anchors_do_not_reach_into_the_next_document():
    with pytest.raises(YAMLStreamError, match="has no anchor before it"):
        documents("a: &a 1\n---\nb: *a\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", 'line 3: key "a" is given twice'),
        ("spec:\n  x: 1\n  x: 2\n", 'line 3: spec: key "x" is given twice'),
        ("a: b: c", "line 1: mapping values are not allowed in this context"),
        ("a: [1, 2", "line 2: did not find expected"),
        ("a: !!python/object:os.system x", "line 1: a: tag .* is not supported"),
        ("a: !!timestamp 2026-01-01", "line 1: a: tag .* is not supported"),
        ("? [1, 2]\n: x", "a key must be a string"),
        ("a: &a [*a]", "has no anchor before it"),
        ("a: {<<: 5}", "only mappings can be merged"),
        ("a: \x01", "not allowed"),
        ("[" * 100, "more than 64 levels deep"),
        ("a:\n" + "".join(" " * level + "- \n" for level in range(1, 3)) + "\tb: 1", "line"),
    ],
)
def test_what_no_object_needs_is_an_error_with_its_line(text, message):
    with pytest.raises(YAMLStreamError, match=message):
        documents(text)


def test_aliases_cannot_unfold_into_more_than_the_limit(monkeypatch):
    monkeypatch.setattr(yaml_stream, "MAX_VALUES", 10_000)
    bomb = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
    bomb += "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9))
    with pytest.raises(YAMLStreamError, match="more than 10000 values, counting aliases"):
        documents(bomb)


def test_the_limit_counts_over_all_documents(monkeypatch):
    monkeypatch.setattr(yaml_stream, "MAX_VALUES", 100)
    with pytest.raises(YAMLStreamError, match="more than 100 values"):
        documents("---\na: [1, 2, 3]\n" * 50)


@given(st.text(max_size=200))
def test_no_text_makes_it_fail_in_any_other_way(text):
    with contextlib.suppress(YAMLStreamError):
        documents(text)
