"""Counts that are kept while pods, claims, volumes, attachments and nodes come and go."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import make_node
from tests.plugins.volume_scenes import VolumeScene, attachment, claim, csi_node, delayed_class, pod_with, volume
from tests.reference.volume_limits import Storage

from bayplan.api.storage_objects import (
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.shadow_table import ShadowTable

NODES = ("n1", "n2", "n3")
CLAIMS = ("c0", "c1", "c2", "c3")
VOLUMES = ("v0", "v1", "v2")
DRIVERS = ("a.example", "b.example")

_few = st.sampled_from

_pods = _few(["p0", "p1", "p2", "p3"])

_wanted = st.lists(_few(CLAIMS), min_size=1, max_size=3)
pod_changes = st.one_of(
    st.tuples(st.just("set_pod"), _pods, _few(NODES), _wanted),
    st.tuples(st.just("remove_pod"), _pods),
)
other_changes = st.one_of(
    st.tuples(st.just("set_node"), _few(NODES)),
    st.tuples(st.just("remove_node"), _few(NODES)),
    st.tuples(st.just("limit"), _few(NODES), _few([None, 0, 1, 2, 3])),
    st.tuples(st.just("set_claim"), _few(CLAIMS), _few(["", *VOLUMES]), _few(["fast", "none"])),
    st.tuples(st.just("set_volume"), _few(VOLUMES), _few(DRIVERS), _few(["h0", "h1", "h2"])),
    st.tuples(st.just("set_class"), _few(DRIVERS)),
    st.tuples(st.just("attach"), _few(["x", "y"]), _few(NODES), _few(VOLUMES), _few(DRIVERS)),
    st.tuples(st.just("delete"), _few([PersistentVolumeClaim]), _few([f"default/{name}" for name in CLAIMS])),
    st.tuples(st.just("delete"), _few([PersistentVolume]), _few(VOLUMES)),
    st.tuples(st.just("delete"), _few([VolumeAttachment]), _few(["x", "y"])),
    st.tuples(st.just("delete"), _few([CSINode]), _few(NODES)),
)


class World:
    """A scene and its pods by name."""

    def __init__(self) -> None:
        self.scene = VolumeScene()
        self.uids = {}
        self.set_class(DRIVERS[0])
        for name in NODES:
            self.set_node(name)
            self.limit(name, 1)
        for number, name in enumerate(CLAIMS):
            self.set_claim(name, ("", *VOLUMES)[number], "fast")
        for number, name in enumerate(VOLUMES):
            self.set_volume(name, DRIVERS[number % 2], f"h{number}")

    def set_node(self, name):
        self.scene.add(make_node(name, uid=name))

    def remove_node(self, name):
        if self.scene.cache.has_node(name):
            self.scene.cache.remove_node(name)

    def limit(self, name, count):
        self.scene.add(csi_node(name, a_example=count, b_example=1))

    def set_pod(self, name, node, claims):
        self.remove_pod(name)
        self.uids[name] = f"{name}-{len(self.uids)}-{node}-{claims}"
        self.scene.add(pod_with(*claims, name=self.uids[name], node=node))

    def remove_pod(self, name):
        if name in self.uids:
            self.scene.cache.remove_pod(self.uids.pop(name))

    def set_claim(self, name, of, storage_class):
        self.scene.add(claim(name, volume=of, storage_class=storage_class))

    def set_volume(self, name, driver, handle):
        self.scene.add(volume(name, csi=(driver, handle)))

    def set_class(self, provisioner):
        self.scene.add(delayed_class("fast", provisioner=provisioner))

    def attach(self, name, node, of, driver):
        self.scene.add(attachment(name, node, of, driver))

    def delete(self, kind, key):
        self.scene.listers.of(kind).delete(key)

    def storage(self):
        listers = self.scene.listers
        return Storage(
            {each.metadata.name: each for each in listers.of(PersistentVolumeClaim).objects.values()},
            listers.of(PersistentVolume).objects,
            listers.of(StorageClass).objects,
            list(listers.of(VolumeAttachment).objects.values()),
        )


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.one_of(pod_changes, other_changes), min_size=1, max_size=3), min_size=2, max_size=10))
def test_kept_counts_say_what_counting_anew_says(rounds):
    world = World()
    table = world.scene.cache.nodes
    tried_out = ShadowTable(table)
    for changes_of_round in rounds:
        for change in changes_of_round:
            getattr(world, change[0])(*change[1:])
        claims = world.scene.listers.of(PersistentVolumeClaim)
        known = [name for name in CLAIMS if claims.get(f"default/{name}") is not None]
        tried_out.follow()
        storage = world.storage()
        for wanted in ([], *([name] for name in known), known):
            pod = pod_with(*wanted, name="new")
            rejected = world.scene.texts(world.scene.limits, pod)
            for row in table.rows().tolist():
                name = table.names[row]
                others = [each.pod for each in table.pods[row].values()]
                limits = world.scene.listers.of(CSINode).get(name)
                assert (name in rejected) == storage.exceeds(pod, name, others, limits)
            codes = [
                world.scene.limits.filter({}, PodInfo(pod), each, each.rows()).tolist() for each in (table, tried_out)
            ]
            assert codes[0] == codes[1]
