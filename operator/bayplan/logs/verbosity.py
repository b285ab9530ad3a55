"""kube-scheduler's levels of `-v` as levels of the standard library's logging."""

import logging
from typing import Final

V2: Final = logging.INFO - 2
"""Each placement and each verdict; what a watch was interrupted by."""

V4: Final = logging.INFO - 4
"""Why a pod is held in the queue; single failures that another line counts."""

V5: Final = logging.INFO - 5
"""Each move of a pod in the queue."""

V10: Final = logging.INFO - 10
"""Each plugin's score of each node; the same as DEBUG."""


def level_of(verbosity: int) -> int:
    """Return the level from which on lines are written at `-v verbosity`; 0 is INFO, each step one below it."""
    return max(logging.INFO - verbosity, 1)


def verbosity_of(level: int) -> int:
    """Return the smallest `-v` that writes lines of `level`."""
    return max(logging.INFO - level, 0)
