"""Sums of weights that also tell whether anything was summed: weights that cancel out are not the same as none."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

_WEIGHT_BITS: Final = 40
_COUNT_BITS: Final = 64 - _WEIGHT_BITS
_ONE: Final = 1 << _WEIGHT_BITS


def tally(weight: int) -> int:
    """One weight as a summand: sums of tallies hold how many there were above the sum of their weights."""
    return _ONE + weight


def weight_sums(tallies: NDArray[np.int64]) -> NDArray[np.int64]:
    """The weights that sums of tallies hold, of the same shape; sums below 2^39 in size are exact."""
    return (tallies << _COUNT_BITS) >> _COUNT_BITS
