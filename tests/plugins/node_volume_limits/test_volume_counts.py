"""Counts that are kept while pods, claims, volumes, attachments and nodes come and go."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plugins.volume_scenes import (
    ChangingScene,
    attachment,
    change,
    claim,
    csi_driver,
    csi_node,
    delayed_class,
    host,
    pod_with,
    rounds,
    volume,
)
from tests.reference.volume_limits import exceeds_limits

from bayplan.api.storage_objects import CSINode, PersistentVolume, PersistentVolumeClaim, VolumeAttachment
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.scratch_table import ScratchTable

NODES = ("n1", "n2", "n3")
PODS = ("p0", "p1", "p2", "p3")
CLAIMS = ("c0", "c1", "c2", "c3")
VOLUMES = ("v0", "v1", "v2")
DRIVERS = ("a.example", "b.example")

_few = st.sampled_from


def pod_on(node, name, claims):
    return pod_with(*claims, name=name, node=node)


changes = st.one_of(
    change("add", st.builds(pod_on, _few(NODES), _few(PODS), st.lists(_few(CLAIMS), min_size=1, max_size=3))),
    change("remove_pod", _few(PODS)),
    change("add", st.builds(host, _few(NODES))),
    change("remove_node", _few(NODES)),
    change("add", st.builds(csi_node, _few(NODES), a_example=_few([None, 0, 1, 2, 3]), b_example=st.just(1))),
    change("add", st.builds(claim, _few(CLAIMS), volume=_few(["", *VOLUMES]), storage_class=_few(["fast", "none"]))),
    change("add", st.builds(volume, _few(VOLUMES), csi=st.tuples(_few(DRIVERS), _few(["h0", "h1", "h2"])))),
    change("add", st.builds(delayed_class, st.just("fast"), _few(DRIVERS))),
    change("add", st.builds(attachment, _few(["x", "y"]), _few(NODES), _few(VOLUMES), _few(DRIVERS))),
    change("delete", st.just(PersistentVolumeClaim), _few([f"default/{name}" for name in CLAIMS])),
    change("delete", st.just(PersistentVolume), _few(VOLUMES)),
    change("delete", st.just(VolumeAttachment), _few(["x", "y"])),
    change("delete", st.just(CSINode), _few(NODES)),
    change("add", st.builds(csi_driver, _few(DRIVERS), prevents=st.booleans())),
)


def world():
    scene = ChangingScene(delayed_class("fast", DRIVERS[0]))
    scene.add(*(each for name in NODES for each in (host(name), csi_node(name, a_example=1, b_example=1))))
    scene.add(*(claim(name, volume=of, storage_class="fast") for name, of in zip(CLAIMS, ("", *VOLUMES), strict=True)))
    scene.add(*(volume(name, csi=(DRIVERS[number % 2], f"h{number}")) for number, name in enumerate(VOLUMES)))
    return scene


@settings(max_examples=60, deadline=None)
@given(rounds(changes, least=2, most=10))
def test_kept_counts_say_what_counting_anew_says(rounds_of_changes):
    scene = world()
    table = scene.cache.nodes
    tried_out = ScratchTable(table)
    for changes_of_round in rounds_of_changes:
        scene.apply(changes_of_round)
        tried_out.follow()
        claims = [each.metadata.name for each in scene.listers.of(PersistentVolumeClaim).objects.values()]
        for wanted in ([], *([name] for name in claims), claims):
            pod = pod_with(*wanted, name="new")
            rejected = scene.texts(scene.limits, pod)
            for row in table.rows().tolist():
                others = [each.pod for each in table.pods[row].values()]
                expected = exceeds_limits(pod, table.names[row], others, scene.listers)
                assert (table.names[row] in rejected) == expected
            codes = [scene.limits.filter({}, PodInfo(pod), each, each.rows()).tolist() for each in (table, tried_out)]
            assert codes[0] == codes[1]
