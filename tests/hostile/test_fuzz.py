"""Random JSON near the schema goes all the way: it is decoded or refused, and the scheduler goes on."""

import json
from contextlib import suppress

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.hostile.near_schema import near
from tests.hostile.world import World, metadata, pod

from bayplan.api.errors import DECODE_ERRORS
from bayplan.api.kinds import RESOURCES
from bayplan.api.objects import Node, Pod, PodSpec
from bayplan.api.storage_objects import CSIDriver, CSINode, PersistentVolumeClaim, StorageClass
from bayplan.api.watch_event import outline_of, pod_event, raw_event_decoder
from bayplan.api.workload_objects import PriorityClass
from bayplan.config.load import default_configuration
from bayplan.simulate.cluster import read_cluster
from bayplan.simulate.documents import ClusterFileError
from bayplan.simulate.simulator import Simulator

KINDS = [Pod, Node, PriorityClass, *(resource.type for resource in RESOURCES)]


def add_storage(world):
    claim = {"spec": {"storageClassName": "class", "resources": {"requests": {"storage": "1Gi"}}}}
    driver = "csi.example.com"
    world.add(PersistentVolumeClaim, {**claim, "metadata": metadata("claim", namespace="default")})
    waits = {"provisioner": driver, "volumeBindingMode": "WaitForFirstConsumer"}
    world.add(StorageClass, {**waits, "metadata": metadata("class")})
    world.add(CSIDriver, {"spec": {"storageCapacity": True}, "metadata": metadata(driver)})
    limit = {"drivers": [{"name": driver, "allocatable": {"count": 1}}]}
    world.add(CSINode, {"spec": limit, "metadata": metadata("n0")})


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_whatever_comes_is_an_object_or_a_decoding_error(kind):
    @settings(max_examples=20)
    @given(near(kind, with_junk=True))
    def check(document):
        raw = json.dumps(document).encode()
        with suppress(*DECODE_ERRORS):
            obj = msgspec.json.decode(raw, type=kind)
            # What is decoded can be shown and told apart, as logs and the evaluations' keys do.
            assert obj == msgspec.json.decode(raw, type=kind)
            assert repr(obj)
        outline = outline_of(msgspec.Raw(raw))
        assert isinstance(outline.metadata.key, str)

    check()


@settings(max_examples=200)
@given(st.binary(max_size=60) | st.text(alphabet='{}[]":,0123456789.eE-nul \\uxd8', max_size=60).map(str.encode))
def test_bytes_that_are_no_event_are_told_as_such(raw):
    for decode in (raw_event_decoder.decode, msgspec.json.Decoder(Pod).decode):
        with suppress(*DECODE_ERRORS):
            decode(raw)
    assert isinstance(outline_of(msgspec.Raw(raw)).metadata.name, str)


@pytest.mark.parametrize("depth", [100, 100_000])
def test_an_object_as_deep_as_it_is_long_ends_no_process(depth):
    deep = b'{"spec":{"volumes":[{"csi":' + b'{"a":' * depth + b"1" + b"}" * depth + b"}]}}"
    with suppress(*DECODE_ERRORS):
        msgspec.json.decode(deep, type=Pod)
    assert outline_of(msgspec.Raw(deep)).metadata.key in {"", "?"}


@settings(max_examples=100)
@given(near(Pod, with_junk=True), st.sampled_from(["ADDED", "MODIFIED", "DELETED", None, "x"]))
def test_a_watched_pod_is_queued_or_left_out_or_nobodys_business(document, kind):
    world = World(nodes=1, pods=0)
    world.pending.watched(pod_event({"type": kind, "object": document}))
    assert not (world.pending.uids() and world.metrics.left_out)
    assert kind != "DELETED" or not (world.pending.uids() or world.metrics.left_out)


@settings(max_examples=40)
@given(near(PodSpec))
def test_any_pod_is_decided_and_the_next_one_is_not_harmed(spec):
    world = World(nodes=2, pods=1)
    spec = {key: value for key, value in spec.items() if key not in {"nodeName", "schedulerName"}}
    world.schedule(pod(**spec))
    # Claims that do not exist hold a pod as a gate does, without a word (upstream: dynamicresources PreEnqueue).
    held = spec.get("schedulingGates") or spec.get("resourceClaims")
    assert "hostile" in world.outcomes or world.metrics.left_out or held
    world.place(pod("as-placed", **spec), "n1")
    world.assert_unharmed()


@settings(max_examples=40)
@given(near(Node), near(PodSpec))
def test_any_node_may_join(document, spec):
    world = World(nodes=2, pods=1)
    world.add_node({**document, "metadata": metadata("odd", labels={"kubernetes.io/hostname": "odd"})})
    world.schedule(pod(**{key: value for key, value in spec.items() if key not in {"nodeName", "schedulerName"}}))
    world.assert_unharmed()


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.kind)
def test_any_object_that_plugins_look_up_may_come_and_go(resource):
    names = st.sampled_from(["claim", "volume", "class", "n0", "default", "csi.example.com"])

    @settings(max_examples=20)
    @given(st.lists(st.tuples(names, near(resource.type)), min_size=1, max_size=3))
    def check(objects):
        world = World(nodes=2, pods=1)
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "claim"}}]
        add_storage(world)
        for name, document in objects:
            namespace = "default" if resource.namespaced else ""
            own = {
                key: value for key, value in document.get("metadata", {}).items() if key in {"labels", "annotations"}
            }
            world.add(resource.type, {**document, "metadata": metadata(name, namespace=namespace, **own)})
        world.schedule(pod(volumes=volumes, labels={"app": "a1"}))
        assert "hostile" in world.outcomes
        world.assert_unharmed()

    check()


RESOURCE_KINDS = {(each.api_version, each.kind): each.type for each in RESOURCES}
FILE_KINDS = {("v1", "Pod"): Pod, ("v1", "Node"): Node, ("scheduling.k8s.io/v1", "PriorityClass"): PriorityClass}


@st.composite
def files(draw):
    """A list of objects as `kubectl get -o json` writes it, right or wrong."""
    items = []
    for _ in range(draw(st.integers(1, 3))):
        (api_version, kind), wanted = draw(st.sampled_from(sorted((FILE_KINDS | RESOURCE_KINDS).items(), key=str)))
        document = draw(near(wanted, with_junk=draw(st.booleans())))
        if isinstance(document, dict):
            document = {**document, "apiVersion": api_version, "kind": kind}
            if draw(st.booleans()):
                document["metadata"] = {"name": draw(st.sampled_from(["a", "b", "n0"]))}
        items.append(document)
    return {"apiVersion": "v1", "kind": "List", "items": items}


@settings(max_examples=40)
@given(files())
def test_any_file_is_simulated_or_refused_with_its_place(tmp_path_factory, document):
    file = tmp_path_factory.getbasetemp() / "cluster.json"
    file.write_text(json.dumps(document))
    try:
        objects = read_cluster([str(file)])
    except ClusterFileError as error:
        told = str(error)
    else:
        told = f"{file}: "
        simulate(objects)
    assert told.startswith(f"{file}: ")


def simulate(objects):
    simulator = Simulator(default_configuration(scheduler_name="default-scheduler"))
    simulator.add(objects)
    report = simulator.run()
    assert report.summary.pods >= len(report.pods)
