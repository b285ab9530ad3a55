"""The table of hostile inputs is complete, and docs/hostile-inputs.md has it as it is."""

from pathlib import Path

from e2e.hostile.table import CASES, ROWS, markdown

PAGE = Path(__file__).parents[1] / "docs" / "hostile-inputs.md"


def test_there_are_ninety_seven_rows_in_order_and_each_is_tested():
    assert [row.number for row in ROWS] == list(range(1, 98))
    assert [row.number for row in ROWS if not (row.pods or row.requests or row.before or row.shown_by)] == []


def test_no_two_pods_have_one_name():
    assert len(CASES) == sum(len(row.pods) for row in ROWS)


def test_the_page_has_the_table():
    """`python -m e2e.hostile.table` prints it."""
    assert markdown() in PAGE.read_text()
