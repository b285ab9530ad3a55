"""Where in a file a field stands."""

import pytest

from bayplan.config.document import Positions
from bayplan.config.errors import FieldError, Place

TEXT = """\
a: 1
b:
  c: [x, {d: 2}]
  "odd key": 3
shared: &shared {e: 4}
merged: {<<: *shared, f: 5}
copied: *shared
twice: 1
twice: 2
"""


@pytest.mark.parametrize(
    ("path", "line", "column"),
    [
        ("a", 1, 1),
        ("b.c", 3, 3),
        ("b.c[0]", 3, 7),
        ("b.c[1].d", 3, 11),
        ('b["odd key"]', 4, 3),
        ("merged.f", 6, 23),
        ("merged.e", 5, 18),
        ("copied.e", 5, 18),
        ("twice", 9, 1),
        ("b.missing.deeper", 2, 1),
        ("b.c[7].d", 3, 3),
    ],
)
def test_a_field_is_where_its_key_begins_and_a_missing_one_where_it_would_be(path, line, column):
    assert Positions(TEXT.encode()).place(path) == Place(line, column)


@pytest.mark.parametrize("path", ["", "nothing", "--feature-gates"])
def test_what_no_field_of_the_file_says_has_no_place(path):
    assert Positions(TEXT.encode()).place(path) is None


@pytest.mark.parametrize("data", [b"a: [", b"\xff", b"", b"- 1"])
def test_a_file_that_is_no_object_has_no_places(data):
    assert Positions(data).place("a") is None


def test_json_has_places_as_well_and_a_byte_order_mark_does_not_shift_them():
    assert Positions(b'\xef\xbb\xbf{"a":\n {"b": 1}}').place("a.b") == Place(2, 3)


def test_an_anchor_that_is_there_twice_hides_no_place():
    assert Positions(b"a: &x 1\nb: &x 2\nc: *x\n").place("c") == Place(3, 1)


def test_an_element_that_is_an_alias_is_where_the_alias_stands_and_its_fields_where_they_are_written():
    positions = Positions(b"a: &x {b: 1}\nc: [2,\n *x]\n")
    assert (positions.place("c[1]"), positions.place("c[1].b")) == (Place(3, 2), Place(1, 8))


def test_documents_before_one_that_is_refused_have_places():
    positions = Positions(b"a: 1\n---\nb: !!set {}\n---\nc: 1\n")
    assert (positions.place("a"), positions.place("b", 2), positions.place("c", 3)) == (Place(1, 1), None, None)


def test_a_remark_that_has_a_place_keeps_it():
    told = FieldError("a", "x", Place(7, 7))
    assert [each.place for each in Positions(b"a: 1").placed([told, FieldError("a", "y")])] == [
        Place(7, 7),
        Place(1, 1),
    ]
