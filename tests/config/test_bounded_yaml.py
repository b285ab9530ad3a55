"""What configuration and cluster files share; tests/config/test_document.py has the limits of one document."""

import contextlib

import pytest

from bayplan.config.bounded_yaml import RefusedYAMLError, Rules, yaml_documents


def documents(text, *, max_values=20_000_000, mistake=pytest.fail, max_aliased=None):
    return list(yaml_documents(text, Rules(64, max_values, mistake, max_aliased=max_aliased)))


def test_documents_keep_their_numbers_and_an_empty_one_is_none():
    assert documents("a: 1\n---\n---\n# only a comment\n---\nb: [x, 2.5, true, null]\n") == [
        (1, {"a": 1}),
        (2, None),
        (3, None),
        (4, {"b": ["x", 2.5, True, None]}),
    ]


def test_of_merged_mappings_the_first_wins():
    assert documents("a: &a {x: 1}\nb: &b {x: 2, y: 2}\nc: {<<: [*a, *b]}")[0][1]["c"] == {"x": 1, "y": 2}


def test_anchors_do_not_reach_into_the_next_document():
    with pytest.raises(RefusedYAMLError, match="has no anchor before it"):
        documents("a: &a 1\n---\nb: *a\n")


def test_mistakes_in_mappings_are_noted_by_line_and_path_and_reading_goes_on():
    noted = []
    text = "spec:\n- x: 1\n  x: 2\n- {<<: 5, y: 1}\n"
    value = documents(text, mistake=lambda *mistake: noted.append(mistake))[0][1]
    assert value == {"spec": [{"x": 2}, {"y": 1}]}
    (repeated, key), (merge, none) = noted
    assert (repeated.line, repeated.container, repeated.path, key) == (3, "spec[0]", "spec[0]", "x")
    assert (merge.line, merge.container, none) == (4, "spec[1]", None)


@pytest.mark.parametrize(("max_values", "allowed"), [(50 * 5, True), (50 * 5 - 1, False)])
def test_the_limit_counts_over_all_documents(max_values, allowed):
    expectation = contextlib.nullcontext() if allowed else pytest.raises(RefusedYAMLError, match="more than 249 values")
    with expectation:
        documents("---\na: [1, 2]\n" * 50, max_values=max_values)


@pytest.mark.parametrize(("max_aliased", "allowed"), [(3 * 4, True), (3 * 4 - 1, False)])
def test_values_behind_aliases_have_a_limit_of_their_own_over_all_documents(max_aliased, allowed):
    # Each document has one alias, of a list and its three values.
    text = "---\na: &a [1, 2, 3]\nb: *a\n" * 3
    expectation = contextlib.nullcontext() if allowed else pytest.raises(RefusedYAMLError, match="11 values behind")
    with expectation:
        documents(text, max_aliased=max_aliased)
