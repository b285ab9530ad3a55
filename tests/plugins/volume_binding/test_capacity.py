import tracemalloc

import pytest
from tests.plugins.volume_scenes import capacity

from bayplan.api.meta_objects import LabelSelector
from bayplan.api.storage_objects import CSIStorageCapacity
from bayplan.cache.listers import Listers
from bayplan.cache.node_index import NodeIndex
from bayplan.cache.node_table import NodeTable
from bayplan.plugins.volume_binding.capacity import NO_SPACE, StorageCapacities
from bayplan.plugins.volume_binding.node_topology import NodeTopology


@pytest.mark.parametrize("labels", [{}, {"zone": "a"}], ids=["everywhere", "on one label"])
def test_a_class_whose_capacities_are_gone_leaves_nothing_behind(labels):
    nodes, listers = NodeTable(), Listers()
    lister = listers.of(CSIStorageCapacity)
    capacities = StorageCapacities(nodes, listers, NodeTopology(NodeIndex(nodes), nodes))
    tracemalloc.start()
    try:
        for number in range(2000):
            lister.set(capacity("k", f"class-{number}", "1Gi", LabelSelector(match_labels=labels)))
            capacities.of_class(f"class-{number}")
            lister.delete("kube-system/k")
            assert (capacities.of_class(f"class-{number}").largest_volume == NO_SPACE).all()
        assert tracemalloc.get_traced_memory()[0] < 250_000
    finally:
        tracemalloc.stop()


def test_label_keys_whose_capacities_are_gone_leave_nothing_behind(allocated):
    nodes, listers = NodeTable(), Listers()
    lister = listers.of(CSIStorageCapacity)
    capacities = StorageCapacities(nodes, listers, NodeTopology(NodeIndex(nodes), nodes))
    lister.set(capacity("stays", "fast", "1Gi", LabelSelector(match_labels={"zone": "a"})))

    def come_and_go(numbers):
        for number in numbers:
            lister.set(capacity("k", "fast", "1Gi", LabelSelector(match_labels={f"example.com/k{number}": "v"})))
            capacities.of_class("fast")
            lister.delete("kube-system/k")
            capacities.of_class("fast")

    allocated()
    come_and_go(range(20))
    before = allocated()
    come_and_go(range(20, 220))
    assert allocated() - before < 50_000
