from tests.builders import make_node, make_pod_info

from bayplan.cache.cache import Cache
from bayplan.cache.shadow_table import ShadowTable

GPU = "example.com/gpu"


def test_a_shadow_counts_a_resource_from_when_a_node_has_it_to_when_none_has():
    cache = Cache()
    for name in ("a", "b"):
        cache.set_node(make_node(name))
    cache.set_pod(make_pod_info(node="a", requests={GPU: 2}))
    shadow = ShadowTable(cache.nodes)
    assert shadow.follow() is None
    shadow.place([make_pod_info(requests={GPU: 3})], shadow.row("a"))
    assert GPU not in shadow.requested
    cache.set_node(make_node("b", allocatable={GPU: 8}))
    assert shadow.follow() is None, "whoever placed pods here must place them again"
    assert shadow.requested[GPU][shadow.row("a")] == 2
    shadow.place([make_pod_info(requests={GPU: 3})], shadow.row("a"))
    assert shadow.requested[GPU][shadow.row("a")] == 5
    cache.remove_node("b")
    shadow.follow()
    assert GPU not in {*shadow.requested, *shadow.allocatable}
