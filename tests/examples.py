"""How many random examples the longest property tests try."""

import os

_TIMES = int(os.environ.get("BAYPLAN_EXAMPLES_TIMES", "1"))


def examples(count: int) -> int:
    """As many as each run tries; `make sweep` has the same tests try many times as many."""
    return count * _TIMES
