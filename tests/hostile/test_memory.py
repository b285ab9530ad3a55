"""What hostile pods leave behind once they are gone: nothing that grows with their number or size."""

import json

import msgspec
import pytest
from tests.hostile.world import (
    HOST,
    ZONE,
    Pod,
    World,
    claims,
    decoded,
    expression,
    near_pods,
    node,
    node_affinity,
    pod,
    requests,
    spread,
    term,
)

from bayplan.api.object_store import ObjectStore
from bayplan.api.objects import Node
from bayplan.api.watch_event import pod_event
from bayplan.cache.cache import Cache
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.shared_parts import SharedParts

MIB = 2**20


def terms(count, serial):
    """Preferred terms that no other pod has."""
    each = [term(ZONE, expression("app", "In", f"{serial}-{i}")) for i in range(count)]
    return near_pods("podAffinity", each, preferred=True)


def come_and_go(world, document, node_name="n0", *, decided=False):
    """The pod is bound by somebody or placed here, another pod is decided on, and the first is deleted."""
    if decided:
        assert world.schedule(document).startswith("-> ")
    else:
        world.place(document, node_name)
    assert world.schedule(pod("among", **terms(5, "shared"))).startswith("-> ")
    world.assigned.on_delete(decoded(Pod, document))
    assert world.schedule(pod("after", **terms(5, "shared"))).startswith("-> ")


def test_made_up_resources_leave_nothing_behind(allocated):
    world = World(nodes=500)
    world.assert_unharmed()
    before = allocated()
    made_up = {f"made-up.io/{i}": "1" for i in range(10_000)}
    hostile = pod(**requests(**made_up))
    refusal = world.schedule(hostile)
    assert refusal.startswith(
        "0/500 nodes are available: 500 Insufficient made-up.io/0, 500 Insufficient made-up.io/1, "
    )
    world.pending.gone(hostile["metadata"]["uid"])
    come_and_go(world, hostile)
    del hostile, made_up, refusal
    world.outcomes.clear()
    assert allocated() - before < 5 * MIB


@pytest.mark.parametrize(
    ("hostile", "decided"),
    [
        pytest.param(lambda serial: pod(**terms(400, serial)), False, id="terms"),
        pytest.param(lambda serial: pod(labels={f"k{i}": f"{serial}" for i in range(10_000)}), False, id="labels"),
        pytest.param(lambda serial: pod(**terms(400, serial)), True, id="decided terms"),
        pytest.param(
            lambda serial: pod(labels={f"k{i}": f"{serial}" for i in range(10_000)}), True, id="decided labels"
        ),
    ],
)
def test_however_many_pods_came_and_went_they_leave_as_much_behind(world, allocated, hostile, decided):
    allocated()
    for serial in range(10):
        come_and_go(world, hostile(serial), decided=decided)
    before = allocated()
    for serial in range(10, 16):
        come_and_go(world, hostile(serial), decided=decided)
    # Each takes more than a mebibyte; what is kept for readers varies between its bound and half of that.
    assert allocated() - before < 5 * MIB


def test_what_is_remembered_of_deleted_pods_has_a_bound(allocated):
    world = World()

    def delete(uid):
        metadata = {"uid": uid, "resourceVersion": "9" * 1000}
        world.pending.watched(pod_event({"type": "DELETED", "object": {"metadata": metadata}}))

    before = allocated()
    for serial in range(20_000):
        delete(f"{serial:01000}")
    delete("long" * 10 * MIB)
    assert allocated() - before < 12 * MIB


def of_every_kind():
    """Large pods, by what makes them large."""
    n = 1000
    node_terms = [{"matchExpressions": [expression("k", "Gt", str(i))]} for i in range(n)]
    ports = [{"hostPort": i + 1} for i in range(n)]
    return {
        "preferred terms": pod(**terms(n, 0)),
        "a selector": pod(**near_pods("podAffinity", [term(HOST, expression("app", "In", *map(str, range(n))))])),
        "node selector terms": pod(**node_affinity(node_terms)),
        "resources": pod(**requests(**{f"made-up.io/{i}": "1" for i in range(n)})),
        "tolerations": pod(tolerations=[{"key": f"k{i}"} for i in range(n)]),
        "spread constraints": pod(topologySpreadConstraints=[spread(f"k{i}") for i in range(n)]),
        "volumes": pod(**claims(*map(str, range(n)))),
        "labels": pod(labels={f"k{i}": "v" for i in range(n)}),
        "host ports": pod(containers=[{"name": "c", "ports": ports}]),
    }


@pytest.mark.parametrize("kind", of_every_kind())
def test_a_pod_takes_no_more_than_the_size_it_is_counted_by(allocated, kind):
    document = of_every_kind()[kind]
    before = allocated()
    info = PodInfo(decoded(Pod, document))
    _ = info.placed, info.host_ports, info.affinity_terms
    taken = allocated() - before
    assert taken < info.size < 20 * taken


def test_a_pod_on_a_node_takes_little_beside_what_its_template_gives(allocated):
    documents = [
        msgspec.Raw(json.dumps(ordinary(name=f"runner-{serial:05}", serial=serial)).encode()) for serial in range(2000)
    ]
    cache, shared = Cache(), SharedParts()
    cache.set_node(decoded(Node, node("n0", pods="5000")))
    store = ObjectStore(Pod, Placed(cache), on_undecodable=print, keep_undecodable=True, shared=shared.of)
    store.put(documents[0])
    before = allocated()
    for document in documents[1:]:
        store.put(document)
    # It takes 986, and 1,195 with its key as a text, a dict and a time of its own.
    assert (allocated() - before) / len(documents[1:]) < 1100


class Placed:
    """Takes pods of a watch into a cache."""

    def __init__(self, cache):
        self.on_add = lambda obj: cache.set_pod(PodInfo(obj))


def ordinary(*, name, serial):
    """A pod of a template on a node, one of a hundred that were made in one second."""
    document = pod(name, labels={"app": "runner"}, nodeName="n0", priority=0, nodeSelector={"fleet": "linux"})
    document["metadata"]["uid"] = f"00000000-0000-0000-0000-{serial:012}"
    document["metadata"]["creationTimestamp"] = f"2026-11-28T09:00:{serial // 100:02}Z"
    document["status"] = {"phase": "Running"}
    return document
