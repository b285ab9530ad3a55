import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import make_selector, make_term

from bayplan.api.meta_objects import LabelSelector, LabelSelectorRequirement
from bayplan.api.objects import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from bayplan.api.quantity import parse_int64
from bayplan.api.selectors import (
    compile_label_selector,
    compile_node_selector,
    compile_node_selector_terms,
    is_label_key,
    is_label_value,
)


def _requirement(key, operator, values=None):
    return LabelSelector(match_expressions=[LabelSelectorRequirement(key=key, operator=operator, values=values)])


def _term(key, operator, values=None):
    return NodeSelectorTerm(match_expressions=[NodeSelectorRequirement(key=key, operator=operator, values=values)])


def _matches(*terms, labels=None, name="n1"):
    return compile_node_selector_terms(terms).matches(labels, name)


def test_no_selector_matches_nothing_and_an_empty_one_everything():
    nothing, everything = compile_label_selector(None), compile_label_selector(LabelSelector())
    assert nothing.is_nothing
    assert everything.is_everything
    for labels in (None, {}, {"app": "web"}):
        assert not nothing.matches(labels)
        assert everything.matches(labels)


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        (make_selector(app="web"), {"app": "web", "tier": "front"}, True),
        (make_selector(app="web"), {"app": "db"}, False),
        (make_selector(app="web"), {}, False),
        (make_selector(app="web"), None, False),
        (make_selector(app=""), {"app": ""}, True),
        (make_selector(app=""), {}, False),
        (make_selector(app="web", tier="front"), {"app": "web"}, False),
        (make_selector("app In web,db"), {"app": "db"}, True),
        (make_selector("app In web,db"), {"app": "x"}, False),
        (make_selector("app In web,db"), {}, False),
        (make_selector("app NotIn web,db"), {"app": "db"}, False),
        (make_selector("app NotIn web,db"), {"app": "x"}, True),
        (make_selector("app NotIn web,db"), {}, True),
        (make_selector("app Exists"), {"app": ""}, True),
        (make_selector("app Exists"), {}, False),
        (make_selector("app DoesNotExist"), {"app": ""}, False),
        (make_selector("app DoesNotExist"), {}, True),
        (make_selector("tier In a", app="web"), {"app": "web", "tier": "a"}, True),
        (make_selector("tier In a", app="web"), {"app": "web", "tier": "b"}, False),
    ],
)
def test_all_requirements_of_a_label_selector_must_hold(selector, labels, expected):
    matcher = compile_label_selector(selector)
    assert matcher.matches(labels) is expected
    assert not matcher.error


@pytest.mark.parametrize(
    "selector",
    [
        _requirement("app", "Regex", ["(a+)+$"]),
        _requirement("app", "Gt", ["1"]),
        _requirement("app", "in", ["web"]),
        _requirement("app", "", None),
        _requirement("app", "In", []),
        _requirement("app", "In", None),
        _requirement("app", "NotIn", []),
        _requirement("app", "Exists", ["web"]),
        _requirement("app", "DoesNotExist", ["web"]),
        _requirement("", "DoesNotExist"),
        _requirement("a b", "DoesNotExist"),
        _requirement("app", "NotIn", ["b c"]),
        _requirement("app", "NotIn", ["ok", "<script>"]),
        LabelSelector(match_labels={"app": "b c"}),
        LabelSelector(match_labels={"-app": "web"}),
    ],
)
def test_an_invalid_label_selector_matches_nothing_and_says_why(selector):
    matcher = compile_label_selector(selector)
    assert matcher.error
    assert matcher.is_nothing
    assert not matcher.matches({})
    assert not matcher.matches({"app": "web"})
    assert not matcher.matches({"app": "b c"})


def test_an_error_is_short_and_escaped_whatever_the_key_holds():
    error = compile_label_selector(_requirement("\x1b[31m" + "k" * 10**5, "Exists")).error
    assert len(error) < 120
    assert "\x1b" not in error


def test_sixty_thousand_values_are_looked_up_not_walked():
    matcher = compile_label_selector(_requirement("app", "In", [f"v{i}" for i in range(60_000)]))
    assert all(matcher.matches({"app": f"v{i}"}) for i in range(0, 60_000, 2))
    assert not any(matcher.matches({"app": f"w{i}"}) for i in range(30_000))


def test_terms_are_alternatives_and_their_parts_are_not():
    terms = [make_term("zone In a", "disk In ssd"), make_term("gpu Exists")]
    assert _matches(*terms, labels={"zone": "a", "disk": "ssd"})
    assert not _matches(*terms, labels={"zone": "a"})
    assert _matches(*terms, labels={"gpu": ""})
    assert not _matches(*terms, labels=None)


def test_fields_and_expressions_of_a_term_must_both_hold():
    term = make_term("zone In a", fields=["metadata.name In n1"])
    assert _matches(term, labels={"zone": "a"}, name="n1")
    assert not _matches(term, labels={"zone": "a"}, name="n2")
    assert not _matches(term, labels={"zone": "b"}, name="n1")


def test_no_terms_and_an_empty_term_match_nothing_and_spare_the_others():
    assert not compile_node_selector(NodeSelector()).matches({"zone": "a"}, "n1")
    assert not compile_node_selector(NodeSelector(node_selector_terms=[])).matches({"zone": "a"}, "n1")
    assert not _matches(NodeSelectorTerm(), labels={"zone": "a"})
    assert _matches(NodeSelectorTerm(), make_term("zone In a"), labels={"zone": "a"})


@pytest.mark.parametrize(
    ("term", "labels", "expected"),
    [
        (make_term("cores Gt 4"), {"cores": "5"}, True),
        (make_term("cores Gt 4"), {"cores": "4"}, False),
        (make_term("cores Lt 4"), {"cores": "3"}, True),
        (make_term("cores Lt 4"), {"cores": "4"}, False),
        (make_term("cores Lt 4"), {"cores": "-1"}, True),
        (make_term("cores Gt 4"), {"cores": "+5"}, True),
        (make_term("cores Gt 4"), {"cores": "0000000000000000000000000000005"}, True),
        (make_term("cores Lt 4"), {}, False),
        (make_term("cores Gt 4"), {"cores": ""}, False),
        (make_term("cores Gt 4"), {"cores": "5.0"}, False),
        (make_term("cores Gt 4"), {"cores": "1_0"}, False),
        (make_term("cores Gt 4"), {"cores": " 5"}, False),
        (make_term("cores Gt 4"), {"cores": "\u0665"}, False),
        (make_term("cores Gt 4"), {"cores": "9223372036854775807"}, True),
        (make_term("cores Gt 4"), {"cores": "9223372036854775808"}, False),
        (make_term("cores Gt 4"), {"cores": "9" * 100_000}, False),
        (make_term("cores NotIn 4"), {}, True),
        (make_term("cores DoesNotExist"), {}, True),
    ],
)
def test_node_expressions_compare_labels_as_whole_numbers(term, labels, expected):
    assert _matches(term, labels=labels) is expected


@pytest.mark.parametrize(
    "term",
    [
        _term("cores", "Gt", ["abc"]),
        _term("cores", "Gt", ["9223372036854775808"]),
        _term("cores", "Gt", ["-5"]),
        _term("cores", "Lt", ["1", "2"]),
        _term("cores", "Lt", []),
        _term("cores", "Lt", None),
        _term("cores", "Ge", ["1"]),
        _term("cores", "NotIn", []),
        _term("cores", "NotIn", ["b c"]),
        _term("cores", "Exists", ["1"]),
        _term("c c", "DoesNotExist"),
        make_term(fields=["metadata.name In n1,n2"]),
        make_term(fields=["metadata.name NotIn n2,n3"]),
        make_term(fields=["metadata.name Exists"]),
        make_term(fields=["metadata.namespace NotIn x"]),
        make_term("cores Exists", fields=["spec.unschedulable In n1"]),
    ],
)
def test_an_invalid_term_matches_nothing_and_spares_the_others(term):
    labels = {"cores": "10"}
    assert not _matches(term, labels=labels)
    matcher = compile_node_selector_terms([term, make_term("cores In 10")])
    assert matcher.matches(labels, "n1")
    assert len(matcher.errors) == 1
    assert matcher.errors[0].startswith("term 0: ")


def test_a_node_is_picked_or_avoided_by_name():
    assert _matches(make_term(fields=["metadata.name In n1"]), name="n1")
    assert not _matches(make_term(fields=["metadata.name In n1"]), name="n2")
    assert _matches(make_term(fields=["metadata.name NotIn n1"]), name="n2")
    assert not _matches(make_term(fields=["metadata.name NotIn n1"]), name="n1")


VALID_KEYS = ["a", "A1", "a_b.c-d", "example.com/gpu", "a" * 63, "x" * 63 + "/a", "a.b.c/d"]
INVALID_KEYS = [
    *("", "/", "a/", "/a", "-a", "a-", "a/b/c", "A.com/b", "a..b/c", "a b", "a\n", "é"),
    "a" * 64,
    "a." * 127 + "/a",
]


@pytest.mark.parametrize(
    ("check", "valid", "invalid"),
    [(is_label_key, VALID_KEYS, INVALID_KEYS), (is_label_value, ["", "a", "a" * 63], ["a" * 64, "-", "a.", "a\n"])],
)
def test_label_keys_and_values_are_checked(check, valid, invalid):
    assert [text for text in valid if not check(text)] == []
    assert [text for text in invalid if check(text)] == []


@given(st.integers(-(2**65), 2**65), st.sampled_from(["", "+", "0", "00"]))
def test_numbers_are_read_within_the_int64_range(number, prefix):
    text = f"{'-' if number < 0 else prefix}{abs(number)}"
    assert parse_int64(text) == (number if -(2**63) <= number < 2**63 else None)


labels_strategy = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["", "1", "2", "x"]))
requirement_strategy = st.builds(
    NodeSelectorRequirement,
    key=st.sampled_from(["a", "b", "c", "!"]),
    operator=st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Regex"]),
    values=st.none() | st.lists(st.sampled_from(["", "1", "2", "x", "b c"]), max_size=2),
)


def _holds(requirement, labels):
    """Slowly; an invalid requirement does not hold."""
    key, operator, values = requirement.key, requirement.operator, requirement.values or []
    if key == "!" or "b c" in values:
        return False
    here = {labels[key]} if key in labels else set()
    numbers = {int(value) for value in here if value.isdigit()}
    bounds = [int(value) for value in values if value.isdigit()]
    one_bound = len(values) == len(bounds) == 1
    return {
        "In": bool(here & set(values)),
        "NotIn": bool(values) and not here & set(values),
        "Exists": not values and bool(here),
        "DoesNotExist": not values and not here,
        "Gt": one_bound and any(number > bounds[0] for number in numbers),
        "Lt": one_bound and any(number < bounds[0] for number in numbers),
    }.get(operator, False)


@given(st.lists(st.lists(requirement_strategy, max_size=3), max_size=3), labels_strategy)
def test_node_selectors_agree_with_a_slow_reading_of_the_rules(expressions, labels):
    terms = [NodeSelectorTerm(match_expressions=requirements) for requirements in expressions]
    expected = any(rs and all(_holds(r, labels) for r in rs) for rs in expressions)
    assert _matches(*terms, labels=labels) is expected


@given(st.lists(requirement_strategy, max_size=3), labels_strategy)
def test_label_selectors_agree_with_a_slow_reading_of_the_rules(requirements, labels):
    selector = LabelSelector(
        match_expressions=[
            LabelSelectorRequirement(key=r.key, operator=r.operator, values=r.values) for r in requirements
        ]
    )
    expected = all(_holds(r, labels) and r.operator not in ("Gt", "Lt") for r in requirements)
    assert compile_label_selector(selector).matches(labels) is expected


@given(st.lists(requirement_strategy, max_size=12), labels_strategy, st.booleans())
def test_a_selector_of_very_many_requirements_says_what_a_short_one_says(requirements, labels, needs_one_more):
    short = [LabelSelectorRequirement(key=r.key, operator=r.operator, values=r.values) for r in requirements]
    met = [LabelSelectorRequirement(key=f"k{index}", operator="DoesNotExist") for index in range(20)]
    long = [*met, *short, LabelSelectorRequirement(key="e", operator="Exists" if needs_one_more else "DoesNotExist")]
    expected = compile_label_selector(LabelSelector(match_expressions=short)).matches(labels)
    matcher = compile_label_selector(LabelSelector(match_expressions=long))
    assert matcher.matches(labels) is (expected and not needs_one_more)
    assert matcher.matches({**labels, "e": ""}) is (expected and needs_one_more)


def test_a_small_selector_takes_little(allocated):
    selector = make_selector(app="a")
    before = allocated()
    compiled = [compile_label_selector(selector) for _ in range(1000)]
    # Of these some 160 are the closure that tests a label, and 200 a set of one value.
    assert allocated() - before < 800 * len(compiled)
