import inspect
import sys
from itertools import pairwise

import pytest

from bayplan.cel.errors import CompileError, EvaluationError
from bayplan.cel.kubernetes_types import Quantity
from bayplan.cel.parser import DEEPEST, LONGEST
from bayplan.cel.selector import Device, Selector

MODEL = 'device.attributes["gpu.example.com"].model'


def device(**attributes):
    return Device("gpu.example.com", attributes, {"memory": Quantity.parse("40Gi")})


def test_a_selector_says_which_literal_paths_it_reads():
    selector = Selector(
        f'{MODEL} == "A100" && device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0'
        ' && has(device.attributes["other.example.com"].family) && device.driver != ""'
    )
    assert selector.paths == {
        ("attributes", "gpu.example.com", "model"),
        ("capacity", "gpu.example.com", "memory"),
        ("attributes", "other.example.com", "family"),
        ("driver",),
    }


@pytest.mark.parametrize(
    "expression",
    [
        'cel.bind(gpu, device.attributes["gpu.example.com"], gpu.model == "A100")',
        'device.attributes.exists(domain, domain == "gpu.example.com")',
        f'device.attributes["gpu.example.com"][{MODEL}] == 1',
        'device.attributes[device.driver].model == "A100"',
    ],
)
def test_a_selector_whose_names_are_worked_out_may_read_anything(expression):
    assert Selector(expression).paths is None


def test_names_without_a_domain_have_the_drivers():
    named = Device("gpu.example.com", {"model": "A100", "other.example.com/model": "B"})
    assert Selector(f'{MODEL} == "A100"').matches(named)
    assert Selector('device.attributes["other.example.com"].model == "B"').matches(named)


def test_a_device_with_a_problem_has_no_answer_to_anything():
    broken = Device("gpu.example.com", problem="attribute v: parse semantic version: Version string empty")
    with pytest.raises(EvaluationError, match="attribute v: parse semantic version"):
        Selector("true").matches(broken)


def test_an_answer_leaves_nothing_behind_for_the_next():
    selector = Selector(f'cel.bind(m, {MODEL}, m == "A100")')
    assert [selector.matches(device(model=each)) for each in ("A100", "H100", "A100")] == [True, False, True]
    with pytest.raises(EvaluationError, match="no such key: model"):
        selector.matches(device())
    assert selector.matches(device(model="A100"))


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 5000 + "true" + ")" * 5000,
        "!(" * 3000 + "true" + ")" * 3000,
        "[" * 5000 + "]" * 5000,
        "0" + "+0" * 4000 + " == 0",
        "device" + ".a" * 4000 + " == 0",
        "true" + " ? true : true" * 600,
        f"{MODEL}[" * 200 + "0" + "]" * 200,
    ],
)
def test_an_expression_too_deep_is_refused_with_a_text(expression):
    with pytest.raises(CompileError, match=f"expression recursion limit exceeded: {DEEPEST}"):
        Selector(expression)


def test_an_expression_too_long_is_refused_with_a_text():
    with pytest.raises(CompileError, match=f"longer than {LONGEST} bytes"):
        Selector(" " * LONGEST + "true")


def test_the_deepest_expression_needs_a_third_of_pythons_stack():
    expression = "!(" * (DEEPEST // 2 - 1) + "true" + ")" * (DEEPEST // 2 - 1)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + limit // 3)
    try:
        assert isinstance(Selector(expression).matches(device()), bool)
    finally:
        sys.setrecursionlimit(limit)


def test_a_chain_of_as_many_terms_as_fit_is_no_deep_one():
    chain = " || ".join(['device.driver == ""'] * 400) + " || true"
    assert Selector(chain).matches(device())


def doubled(times, text):
    """A text that is doubled so many times, each time under another name."""
    names = [f"v{each}" for each in range(times + 1)]
    bindings = [f"cel.bind({after}, {before} + {before}, " for before, after in pairwise(names)]
    return f"cel.bind(v0, {text}, {''.join(bindings)}size({names[-1]}) > 0{')' * (times + 1)}"


@pytest.mark.parametrize(
    "expression",
    [
        "lists.range(2000).all(a, lists.range(2000).all(b, a + b >= 0))",
        doubled(40, '"x"'),
        doubled(40, "[1]"),
        '"xxxxxxxxxx".replace("", "y".replace("", "x")).replace("", "x") == "" || lists.range(99999999999) == []',
        "lists.range(9000000000) == [] || true",
        "lists.range(2000).distinct().size() > 0 || true",
    ],
)
def test_an_expression_that_takes_too_long_is_stopped_whatever_stands_beside_it(expression):
    with pytest.raises(EvaluationError, match="operation cancelled: actual cost limit exceeded"):
        Selector(expression).matches(device())


@pytest.mark.parametrize("amount", ["1e400", f"1{'0' * 400}", "-1e4096"])
def test_an_amount_beyond_all_numbers_is_infinite_as_in_go(amount):
    number = f'quantity("{amount}").asApproximateFloat()'
    assert Selector(f'{number} == double("{"-" * (amount[0] == "-")}inf")').matches(device())


@pytest.mark.parametrize(
    "text", ["", "device.", '"', "'\\q'", "a b", "1 +", "true &&", "[1", "{1:", "f(", "\x00", "`a`", "for"]
)
def test_what_is_no_expression_is_an_error_with_its_place(text):
    with pytest.raises(CompileError, match=r"ERROR: <input>:1:\d+: "):
        Selector(text)
