"""What VolumeBinding and VolumeRestrictions keep between pods, compared with plugins that see everything anew."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import make_selector, make_term
from tests.plugins.volume_scenes import (
    HOSTNAME,
    LOCAL,
    VolumeScene,
    capacity,
    claim,
    csi_driver,
    csi_node,
    delayed_class,
    host,
    pod_with,
    ref,
    topology,
    volume,
)

from bayplan.api.objects import Volume
from bayplan.api.storage_objects import AWSElasticBlockStoreSource, CSIStorageCapacity, PersistentVolume
from bayplan.cache.node_index import NodeIndex
from bayplan.cache.pod_info import PodInfo
from bayplan.config.types import VolumeBindingArgs
from bayplan.framework.effects import Write
from bayplan.plugins.volume_binding.volume_binding import VolumeBinding
from bayplan.plugins.volume_restrictions import VolumeRestrictions

NODES = ("n1", "n2", "n3", "n4")
CLAIMS = ("c0", "c1", "c2", "bound")
TERMS: list[tuple[Any, ...]] = [
    (),
    (make_term("zone In a"),),
    (make_term("zone In b"),),
    (make_term(f"{HOSTNAME} In n1"),),
    (make_term(f"{HOSTNAME} In n3"),),
    (make_term("zone In a,b", f"{HOSTNAME} NotIn n2"),),
    (make_term("zone In a"), make_term(f"{HOSTNAME} In n4")),
    (make_term(fields=["metadata.name NotIn n1"]),),
]

_few = st.sampled_from
_zones = _few([{}, {"zone": "a"}, {"zone": "b"}])
_pods = _few(["p0", "p1", "p2"])

changes = st.one_of(
    st.tuples(st.just("set_node"), _few(NODES), _zones),
    st.tuples(st.just("remove_node"), _few(NODES)),
    st.tuples(
        st.just("set_volume"),
        _few(["v0", "v1", "v2", "v3"]),
        st.fixed_dictionaries(
            {
                "terms": _few(TERMS),
                "size": _few([1, 2, 3]),
                "storage_class": _few([LOCAL, LOCAL, LOCAL, "other"]),
                "claim_ref": _few([None, None, None, ref("c0"), ref("c1", uid="")]),
                "phase": _few(["Available", "Available", "Bound"]),
                "aws_elastic_block_store": _few([None, None, AWSElasticBlockStoreSource("vol-1")]),
            }
        ),
    ),
    st.tuples(st.just("delete"), _few([PersistentVolume]), _few(["v0", "v1", "v2", "v3"])),
    st.tuples(st.just("set_claim"), _few(CLAIMS), _few([1, 2, 3])),
    st.tuples(st.just("set_class"), _few(["kubernetes.io/no-provisioner", "csi.example"]), _few([None, ["a"]])),
    st.tuples(st.just("migrate"), _few(NODES), _few([None, "kubernetes.io/aws-ebs"])),
    st.tuples(
        st.just("set_capacity"),
        _few(["k0", "k1", "k2"]),
        _few([1, 2, 3]),
        _few([None, {}, {"zone": "a"}, {"zone": "b"}, {"zone": "a", HOSTNAME: "n1"}]),
    ),
    st.tuples(st.just("delete"), _few([CSIStorageCapacity]), _few(["kube-system/k0", "kube-system/k1"])),
    st.tuples(st.just("set_pod"), _pods, _few(NODES), _few(["d0", "d1"])),
    st.tuples(st.just("remove_pod"), _pods),
    st.tuples(st.just("assume"), _few(NODES), _few(CLAIMS)),
    st.tuples(st.just("give_back")),
)


class World:
    """A scene, and the pods whose volumes are assumed."""

    def __init__(self) -> None:
        self.scene = VolumeScene(delayed_class(), csi_driver("csi.example"))
        self.version = 1
        self.reserved: list[PodInfo] = []
        for name in NODES:
            self.set_node(name, {"zone": "a"})
        for name in CLAIMS:
            self.set_claim(name, 1)

    def set_node(self, name, labels):
        self.scene.add(host(name, **labels))

    def remove_node(self, name):
        if self.scene.cache.has_node(name):
            self.scene.cache.remove_node(name)

    def set_volume(self, name, form):
        self.version += 1
        self.scene.add(volume(name, version=str(self.version), **form))

    def set_claim(self, name, size):
        self.version += 1
        bound = {"volume": "v0", "bound": True} if name == "bound" else {}
        self.scene.add(claim(name, size=size, version=str(self.version), **bound))

    def set_class(self, provisioner, zones):
        made = delayed_class(provisioner=provisioner)
        allowed = None if zones is None else [topology("zone", *zones)]
        self.scene.add(type(made)(made.metadata, made.provisioner, made.volume_binding_mode, allowed))

    def migrate(self, name, plugin):
        self.scene.add(csi_node(name, migrated=plugin))

    def set_capacity(self, name, size, labels):
        self.scene.add(capacity(name, LOCAL, size, None if labels is None else make_selector(**labels)))

    def set_pod(self, name, node, disk):
        self.remove_pod(name)
        volumes = [Volume(aws_elastic_block_store={"volumeID": disk})]
        self.scene.add(pod_with(name=name, node=node, volumes=volumes))

    def remove_pod(self, name):
        if self.scene.cache.pod(name) is not None:
            self.scene.cache.remove_pod(name)

    def delete(self, kind, key):
        self.scene.listers.of(kind).delete(key)

    def assume(self, node, name):
        pod = PodInfo(pod_with(name, name=f"waits-{len(self.reserved)}"))
        if self.scene.binding.reserve({}, pod, node).ok:
            self.reserved.append(pod)

    def give_back(self):
        if self.reserved:
            self.scene.binding.unreserve({}, self.reserved.pop(), "")

    def answers(self, plugin, pod):
        """The rejected nodes, and what would be written for the pod on the others."""
        scene = self.scene
        rejected = scene.rejections(plugin, pod)
        writes = {}
        for name in NODES if hasattr(plugin, "reserve") else ():
            info = PodInfo(pod)
            if name not in rejected and scene.cache.has_node(name):
                assert plugin.reserve({}, info, name).ok
                writes[name] = [each for each in plugin.pre_bind({}, info, name) if isinstance(each, Write)]
                plugin.unreserve({}, info, name)
        return rejected, writes


def test_a_claim_stays_promised_to_a_node_while_one_of_its_pods_waits():
    world = World()
    world.set_class("csi.example", None)
    world.set_capacity("k0", 1, {})
    world.assume("n1", "c0")
    rejected, _ = elsewhere = world.answers(world.scene.binding, pod_with("c0", name="new"))
    assert rejected.keys() == {"n2", "n3", "n4"}
    world.assume("n1", "c0")
    world.give_back()
    assert world.answers(world.scene.binding, pod_with("c0", name="new")) == elsewhere
    world.give_back()
    assert world.answers(world.scene.binding, pod_with("c0", name="new"))[0] == {}


@settings(max_examples=120, deadline=None)
@given(
    st.lists(st.lists(changes, min_size=1, max_size=5), min_size=1, max_size=6),
    st.lists(_few(CLAIMS), min_size=1, max_size=3),
)
def test_what_is_kept_says_what_looking_anew_says(rounds, wanted):
    world = World()
    scene = world.scene
    pod = pod_with(*wanted, name="new")
    with_disk = pod_with(name="new", volumes=[Volume(aws_elastic_block_store={"volumeID": "d0"})])
    for changes_of_round in rounds:
        for change in changes_of_round:
            getattr(world, change[0])(*change[1:])
        nodes, index = scene.cache.nodes, NodeIndex(scene.cache.nodes)
        anew = VolumeBinding(VolumeBindingArgs(), nodes, index, scene.listers)
        assert world.answers(scene.binding, pod) == world.answers(anew, pod)
        restrictions = VolumeRestrictions(nodes, scene.listers)
        assert world.answers(scene.restrictions, with_disk) == world.answers(restrictions, with_disk)
