from tests.builders import make_node, make_pod_info

from bayplan.cache.cache import Cache
from bayplan.cache.scratch_table import ScratchTable

GPU = "example.com/gpu"


def test_a_scratch_table_counts_a_resource_from_when_a_node_has_it_to_when_none_has():
    cache = Cache()
    for name in ("a", "b"):
        cache.set_node(make_node(name))
    cache.set_pod(make_pod_info(node="a", requests={GPU: 2}))
    scratch = ScratchTable(cache.nodes)
    assert scratch.follow() is None
    scratch.place([make_pod_info(requests={GPU: 3})], scratch.row("a"))
    assert GPU not in scratch.requested
    cache.set_node(make_node("b", allocatable={GPU: 8}))
    assert scratch.follow() is None, "whoever placed pods here must place them again"
    assert scratch.requested[GPU][scratch.row("a")] == 2
    scratch.place([make_pod_info(requests={GPU: 3})], scratch.row("a"))
    assert scratch.requested[GPU][scratch.row("a")] == 5
    cache.remove_node("b")
    scratch.follow()
    assert GPU not in {*scratch.requested, *scratch.allocatable}
