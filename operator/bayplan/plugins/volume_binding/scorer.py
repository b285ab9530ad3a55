"""How full storage would be: the score of nodes by what a pod's claims leave free there (upstream: scorer.go)."""

import numpy as np
from numpy.typing import NDArray

from bayplan.api.quantity import TOO_MUCH, value_of_milli
from bayplan.cache.node_table import Column
from bayplan.framework.interface import MAX_NODE_SCORE, Scores
from bayplan.plugins.node_resources.resource_scoring import half_up
from bayplan.plugins.volume_binding.binder import FoundVolumes
from bayplan.plugins.volume_binding.class_volumes import requested_storage
from bayplan.plugins.volume_binding.node_topology import Mask
from bayplan.plugins.volumes.claims import claim_class


def storage_scores(found: FoundVolumes, table: NDArray[np.int64]) -> Scores:
    """Score each position by how much of storage classes is used, which all weigh the same, `(positions,) int64`.

    `table` has the score of each utilization. Where claims get volumes at hand these count: how much of them is asked
    for. Elsewhere the space that drivers publish for new volumes counts; classes whose driver publishes none do not.
    Where no class counts the score is 0.
    """
    total = np.zeros(len(found.no_match), dtype=np.int64)
    counted = np.zeros(len(found.no_match), dtype=np.int64)
    for of_class in _resources_by_class(found).values():
        total += np.where(of_class.counts, table[of_class.utilization()], 0)
        counted += of_class.counts
    return half_up(total, np.maximum(counted, 1))


class _StorageResource:
    """What is asked of one class at each position, and what there is, in bytes; only where it `counts`."""

    def __init__(self, position_count: int) -> None:
        self.requested: Column = np.zeros(position_count, dtype=np.int64)
        self.capacity: Column = np.zeros(position_count, dtype=np.int64)
        self.counts: NDArray[np.bool_] = np.zeros(position_count, dtype=np.bool_)

    def ask(self, where: Mask, size: int) -> None:
        """Note that a claim of the class asks for `size`."""
        self.requested[where] = np.minimum(self.requested[where] + size, TOO_MUCH)
        self.counts |= where

    def utilization(self) -> Column:
        """Return percents; more than there is counts as full."""
        fits = (self.capacity > 0) & (self.requested <= self.capacity)
        share: Column = self.requested * MAX_NODE_SCORE // np.maximum(self.capacity, 1)
        return np.where(fits, share, MAX_NODE_SCORE)


def _resources_by_class(found: FoundVolumes) -> dict[str, _StorageResource]:
    by_class: dict[str, _StorageResource] = {}
    count = len(found.no_match)
    has_volume = np.zeros(count, dtype=np.bool_)
    for matched in found.matched:
        of_class = by_class.setdefault(claim_class(matched.claim), _StorageResource(count))
        where = matched.is_matched
        of_class.ask(where, value_of_milli(requested_storage(matched.claim)))
        of_class.capacity = np.minimum(of_class.capacity + matched.sizes(), TOO_MUCH)
        has_volume |= where
    for new in found.provisioned:
        if new.capacity is not None:
            of_class = by_class.setdefault(claim_class(new.claim), _StorageResource(count))
            where = new.where & ~has_volume
            of_class.ask(where, value_of_milli(requested_storage(new.claim)))
            # The space is that of the class, however many claims share it.
            of_class.capacity[where] = new.capacity[where]
    return by_class
