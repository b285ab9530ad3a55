"""The fewest bins for a few items, by trying everything."""

from itertools import combinations


def fewest_bins(capacities, sizes):
    """The fewest of the bins that hold all items, none of which is split; None if all bins do not hold them."""
    for count in range(len(capacities) + 1):
        for chosen in combinations(capacities, count):
            if _fit(tuple(sorted(chosen)), tuple(sorted(sizes, reverse=True))):
                return count
    return None


def _fit(free, sizes):
    if not sizes:
        return True
    first, rest = sizes[0], sizes[1:]
    return any(
        _fit(tuple(sorted((*free[:at], room - first, *free[at + 1 :]))), rest)
        for at, room in enumerate(free)
        if room >= first and room not in free[:at]
    )
