"""What VolumeBinding and VolumeRestrictions keep between pods, compared with plugins that see everything anew."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import make_selector
from tests.plugins.volume_scenes import (
    HOSTNAME,
    LOCAL,
    TERMS,
    ChangingScene,
    capacity,
    change,
    claim,
    csi_driver,
    csi_node,
    delayed_class,
    host,
    pod_with,
    ref,
    rounds,
    volume,
)

from bayplan.api.objects import Volume
from bayplan.api.storage_objects import CSIStorageCapacity, PersistentVolume
from bayplan.cache.node_index import NodeIndex
from bayplan.cache.pod_info import PodInfo
from bayplan.config.types import VolumeBindingArgs
from bayplan.plugins.volume_binding.volume_binding import VolumeBinding
from bayplan.plugins.volume_restrictions import VolumeRestrictions

NODES = ("n1", "n2", "n3", "n4")
VOLUMES = ("v0", "v1", "v2", "v3")
CLAIMS = ("c0", "c1", "c2", "bound")
PODS = ("p0", "p1", "p2")
SELECTORS = [None, *(make_selector(**labels) for labels in ({}, {"zone": "a"}, {"zone": "b", HOSTNAME: "n1"}))]

_few = st.sampled_from


def claim_of_size(name, size):
    return claim(name, size=size, **({"volume": "v0", "bound": True} if name == "bound" else {}))


def disk(name):
    return [Volume(aws_elastic_block_store={"volumeID": name})]


changes = st.one_of(
    change("add", _few([host(n, **zone) for n in NODES for zone in ({}, {"zone": "a"}, {"zone": "b"})])),
    change("remove_node", _few(NODES)),
    change(
        "add",
        st.builds(
            volume,
            _few(VOLUMES),
            terms=_few(TERMS),
            size=_few([1, 2, 3]),
            storage_class=_few([LOCAL, LOCAL, LOCAL, "other"]),
            claim_ref=_few([None, None, None, ref("c0"), ref("c1", uid="")]),
            phase=_few(["Available", "Available", "Bound"]),
            aws_elastic_block_store=_few([None, None, {"volumeID": "vol-1"}]),
        ),
    ),
    change("delete", st.just(PersistentVolume), _few(VOLUMES)),
    change("add", st.builds(claim_of_size, _few(CLAIMS), _few([1, 2, 3]))),
    change(
        "add",
        st.builds(
            delayed_class,
            provisioner=_few(["kubernetes.io/no-provisioner", "csi.example"]),
            zone=_few([None, "a"]),
        ),
    ),
    change("add", st.builds(csi_node, _few(NODES), migrated=_few([None, "kubernetes.io/aws-ebs"]))),
    change("add", st.builds(capacity, _few(["k0", "k1", "k2"]), st.just(LOCAL), _few([1, 2, 3]), _few(SELECTORS))),
    change("delete", st.just(CSIStorageCapacity), _few(["kube-system/k0", "kube-system/k1"])),
    change("add", st.builds(pod_with, name=_few(PODS), node=_few(NODES), volumes=_few([disk("d0"), disk("d1")]))),
    change("remove_pod", _few(PODS)),
    change("assume", _few(NODES), _few(CLAIMS)),
    change("give_back"),
)


class World(ChangingScene):
    """A scene with pods whose volumes are assumed."""

    def __init__(self) -> None:
        self.reserved: list[PodInfo] = []
        super().__init__(delayed_class(), csi_driver("csi.example"))
        self.add(*(host(name, zone="a") for name in NODES), *(claim_of_size(name, 1) for name in CLAIMS))

    def assume(self, node, name):
        pod = PodInfo(pod_with(name, name=f"waits-{len(self.reserved)}"))
        if self.binding.reserve({}, pod, node).ok:
            self.reserved.append(pod)

    def give_back(self):
        if self.reserved:
            self.binding.unreserve({}, self.reserved.pop(), "")

    def answers(self, binding, pod):
        """The rejected nodes, and what would be written for the pod on the others."""
        rejected = self.rejections(binding, pod)
        others = [name for name in NODES if name not in rejected and self.cache.has_node(name)]
        return rejected, {name: self.writes(binding, pod, name) for name in others}


def test_a_claim_stays_promised_to_a_node_while_one_of_its_pods_waits():
    world = World()
    world.add(delayed_class(provisioner="csi.example"), capacity("k0", LOCAL, 1, make_selector()))
    pod = pod_with("c0", name="new")
    world.assume("n1", "c0")
    rejected, _ = elsewhere = world.answers(world.binding, pod)
    assert rejected.keys() == {"n2", "n3", "n4"}
    world.assume("n1", "c0")
    world.give_back()
    assert world.answers(world.binding, pod) == elsewhere
    world.give_back()
    assert world.answers(world.binding, pod)[0] == {}


def test_a_volume_stays_promised_to_a_claim_while_another_pod_of_the_claim_waits():
    world = World()
    world.add(volume("v0", size=1, storage_class=LOCAL))
    world.assume("n1", "c0")
    pod = pod_with("c1", name="new")
    before = world.answers(world.binding, pod)
    world.assume("n1", "c0")
    world.give_back()
    assert world.answers(world.binding, pod) == before
    world.give_back()
    assert world.answers(world.binding, pod) != before


@settings(max_examples=120, deadline=None)
@given(rounds(changes), st.lists(_few(CLAIMS), min_size=1, max_size=3))
def test_what_is_kept_says_what_looking_anew_says(rounds_of_changes, wanted):
    world = World()
    pod, with_disk = pod_with(*wanted, name="new"), pod_with(name="new", volumes=disk("d0"))
    nodes = world.cache.nodes
    for changes_of_round in rounds_of_changes:
        world.apply(changes_of_round)
        anew = VolumeBinding(VolumeBindingArgs(), nodes, NodeIndex(nodes), world.listers)
        assert world.answers(world.binding, pod) == world.answers(anew, pod)
        restrictions = VolumeRestrictions(nodes, world.listers)
        assert world.rejections(world.restrictions, with_disk) == world.rejections(restrictions, with_disk)
