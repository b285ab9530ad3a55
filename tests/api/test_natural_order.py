from hypothesis import given
from hypothesis import strategies as st

from bayplan.shown_text import natural_key


def test_numbers_in_names_are_in_the_order_of_counting():
    names = ["n10", "n2", "n1", "a-1-10", "a-1-9", "n02", "n", "10", "9"]
    assert sorted(names, key=natural_key) == ["9", "10", "a-1-9", "a-1-10", "n", "n1", "n02", "n2", "n10"]


@given(st.text(), st.text())
def test_only_equal_names_have_equal_keys(one, other):
    assert (natural_key(one) == natural_key(other)) == (one == other)


def test_no_number_is_too_long():
    assert natural_key("n" + "9" * 100_000) > natural_key("n" + "8" * 4000)
