"""What must always hold of a cache, whatever was done to it."""

from bayplan.cache.cache import Cache
from bayplan.cache.group_members import GroupSource, group_key
from bayplan.cache.resources import PODS


def assert_adds_up(cache: Cache) -> None:
    """Each pod is counted once, on its node, and the columns equal what the pods on each row add up to."""
    table, sizes = cache.nodes, cache.sizes()
    assert table.node_count == int(table.exists.sum())
    assert table.requested.keys() | {PODS} == table.allocatable.keys() | {PODS}
    assert all(column.any() for column in table.allocatable.values()), "a resource that no node has has a column"
    placed = {uid: (table.names[row], pod) for row, pods in enumerate(table.pods) for uid, pod in pods.items()}
    assert len(placed) == int(table.pod_count.sum())
    aside = {uid: (name, pod) for name, pods in cache.without_node.items() for uid, pod in pods.items()}
    assert placed.keys().isdisjoint(aside)
    assert all(cache.without_node.values())
    assert not any(map(cache.has_node, cache.without_node))
    placed |= aside
    assert len(placed) == sizes.pods
    assert sizes.assumed_pods == len(cache.assumed_pods()) == sum(map(cache.is_assumed, placed))
    for uid, (name, pod) in placed.items():
        assert cache.pod(uid) is pod
        assert cache.node_of(uid) == name
    in_groups = [pod for _, pod in placed.values() if group_key(pod.pod) is not None]
    for pod in in_groups:
        key = group_key(pod.pod)
        assert key is not None
        alike = {
            each.uid: each
            for each in in_groups
            if group_key(each.pod) == key and not (key.source is GroupSource.CRD and each.is_terminating)
        }
        assert dict(cache.members.of(key)) == alike
    for row, pods in enumerate(table.pods):
        assert table.pod_count[row] == len(pods)
        for name, column in table.requested.items():
            total = sum(pod.placed.amounts.get(name, 0) for pod in pods.values())
            assert column[row] == total or total > 2**56, f"row {row} {name}: {column[row]} != {total}"


def digest(cache: Cache) -> tuple[object, ...]:
    """All that a decision reads of the pods in a cache: equal digests are equal caches to it."""
    table = cache.nodes
    on_rows = {table.names[row]: list(pods) for row, pods in enumerate(table.pods) if table.exists[row]}
    amounts = {name: column[table.exists].tolist() for name, column in table.requested.items() if column.any()}
    aside = {name: list(pods) for name, pods in cache.without_node.items()}
    assumed = sorted(pod.uid for pod in cache.assumed_pods())
    return on_rows, amounts, table.pod_count[table.exists].tolist(), aside, assumed
