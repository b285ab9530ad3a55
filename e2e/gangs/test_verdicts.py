"""What the comparison prints of its verdicts, and which scenarios it takes."""

import pytest
from tests.oracle.gangs.comparison import DIFFERENT, EQUAL, TIE, Verdict

from e2e.gangs.__main__ import differences, main, table

VERDICTS = {
    "quorum": [Verdict("one", EQUAL), Verdict("two", TIE)],
    "gates": [Verdict("three", DIFFERENT, ("rest 1: bound are none, wanted a1",))],
}


def test_the_table_counts_by_family_and_all_together() -> None:
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table(VERDICTS).splitlines()]
    assert rows[0] == ["family", "scenarios", EQUAL, TIE, DIFFERENT]
    assert rows[2:] == [["quorum", "2", "1", "1", "0"], ["gates", "1", "0", "0", "1"], ["all", "3", "1", "1", "1"]]


def test_a_difference_says_how_it_is_seen_again() -> None:
    (line,) = differences(VERDICTS)
    assert line.startswith("gates / three: rest 1: bound are none")
    assert line.endswith("(python -m e2e.gangs --scenario three)")


@pytest.mark.parametrize("arguments", [["--family", "nothing"], ["--scenario", "nothing"]])
def test_what_is_not_there_is_refused_before_anything_starts(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code not in {0, None}
