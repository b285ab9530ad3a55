"""Tells which requests of a pod's claims find too few devices on nodes, for explanations."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from bayplan.devices.device_counts import DeviceCount
from bayplan.framework.causes import Cause, Detail, DeviceShortage


def shortages(counts: Sequence[Sequence[DeviceCount]], names: Sequence[str]) -> Iterator[Detail]:
    """Give a detail for each request that finds too few on some node, and one more where those have no devices at all.

    `counts` are those of each node in `names`, request by request; a node without an answer has none.
    """
    requests = max((len(each) for each in counts), default=0)
    for request in range(requests):
        found = [each[request] if each else None for each in counts]
        for offers in (True, False):
            short = [each is not None and each.free < each.asked and bool(each.offered) == offers for each in found]
            if any(short):
                yield _detail(found, names, np.array(short))


def _detail(found: Sequence[DeviceCount | None], names: Sequence[str], holds: NDArray[np.bool_]) -> Detail:
    def tell(places: NDArray[np.intp]) -> Cause:
        here = [(each, names[place]) for place in places.tolist() if (each := found[place]) is not None]
        most, node = max(here, key=lambda each: (each[0].free, each[0].selected))
        return DeviceShortage(**most._asdict(), node=node)

    return Detail(holds, tell)
