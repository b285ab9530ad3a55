import pytest
from tests.builders import make_container, make_pod

from bayplan.cache.resources import encoded


def test_the_same_parts_are_the_same_bytes_and_others_are_not():
    one, same, other = (make_pod(cpu=cpu).spec for cpu in ("1", "1", "1000m"))
    assert encoded((one, "a"), largest=1000) == encoded((same, "a"), largest=1000) is not None
    assert encoded((one, "a"), largest=1000) != encoded((other, "a"), largest=1000)
    assert encoded((one, "a"), largest=1000) != encoded((one, "b"), largest=1000)


def test_what_is_larger_than_allowed_is_not_encoded():
    size = len(encoded("a" * 100, largest=1000))
    assert encoded("a" * 100, largest=size) is not None
    assert encoded("a" * 100, largest=size - 1) is None


@pytest.mark.parametrize("strange", ["\ud800", 10**400], ids=["a surrogate", "a number beyond 64 bits"])
def test_what_no_message_carries_is_not_encoded(strange):
    assert encoded(make_container(cpu=strange), largest=1000) is None
