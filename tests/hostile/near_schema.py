"""JSON near the schema of a wire type: right in its types and wild in its values, or wrong in its types too."""

import types
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
from hypothesis import strategies as st

WORDS = ["", "a", "b", "n0", "n1", "default", "kubernetes.io/hostname", "k0", "In", "NotIn", "Exists", "DoesNotExist"]
WORDS += ["Gt", "Equal", "DoNotSchedule", "ScheduleAnyway", "NoSchedule", "PreferNoSchedule", "Honor", "Always"]
WORDS += ["ReadWriteOnce", "ReadWriteOncePod", "WaitForFirstConsumer", "Immediate", "Available", "Bound"]
WORDS += ["claim", "volume", "class", "csi.example.com", "example.com/gpu", "cpu", "memory", "storage"]
WORDS += ["-1", "9" * 30, "2026-01-01T00:00:00Z"]
NUMBERS = [0, 1, -1, 100, 2**31 - 1, 2**31, 2**63 - 1, -(2**63), 2**63, 10**40]
QUANTITIES = ["1", "10m", "1Gi", "1e100", "0.1n", "-1", "1e-100", "9" * 30, "16Ei", 0, 1.5, 1e100, -1, None, "", "x"]

words = st.sampled_from(WORDS) | st.text(max_size=5)
numbers = st.sampled_from(NUMBERS) | st.integers()
quantities = st.sampled_from(QUANTITIES)
junk = st.recursive(
    st.none() | st.booleans() | numbers | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=4,
)


def near(wanted: Any, *, with_junk: bool = False) -> st.SearchStrategy[Any]:
    """JSON values that `wanted` decodes from, more or less; with junk, anything may stand in any place."""
    good = _good(wanted, with_junk)
    return st.one_of(good, good, good, good, good, junk) if with_junk else good


def _good(wanted: Any, with_junk: bool) -> st.SearchStrategy[Any]:
    simple: dict[Any, st.SearchStrategy[Any]] = {str: words, int: numbers, bool: st.booleans(), Any: junk}
    if wanted in simple:
        return simple[wanted]
    if wanted is type(None):
        return st.none()
    if isinstance(wanted, type) and issubclass(wanted, msgspec.Struct):
        return st.deferred(lambda: _struct(wanted, with_junk))
    return _of_parts(get_origin(wanted), get_args(wanted), with_junk)


def _of_parts(origin: Any, arguments: tuple[Any, ...], with_junk: bool) -> st.SearchStrategy[Any]:
    if origin in {Union, types.UnionType}:
        if float in arguments:
            return quantities
        return st.one_of(*(near(each, with_junk=with_junk) for each in arguments))
    if origin is list:
        return st.lists(near(arguments[0], with_junk=with_junk), max_size=3)
    assert origin is dict
    return st.dictionaries(words, near(arguments[1], with_junk=with_junk), max_size=3)


def _struct(wanted: type[msgspec.Struct], with_junk: bool) -> st.SearchStrategy[Any]:
    hints = get_type_hints(wanted)
    fields = {
        field.encode_name: near(hints[field.name], with_junk=with_junk) for field in msgspec.structs.fields(wanted)
    }
    known = st.fixed_dictionaries({}, optional=fields)
    if not with_junk:
        return known
    return st.builds(lambda extra, given: {**extra, **given}, st.dictionaries(words, junk, max_size=1), known)
