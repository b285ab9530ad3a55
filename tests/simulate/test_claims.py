"""The claims of ephemeral volumes, which no file has of pods that are not there yet."""

import json

import pytest

from bayplan.api.claim_objects import ResourceClaim
from bayplan.cli.simulation import ExplainedAttempts
from bayplan.config.load import default_configuration
from bayplan.simulate.capacity import how_many_fit
from bayplan.simulate.changes import Changes
from bayplan.simulate.cluster import read_cluster
from bayplan.simulate.simulator import Simulator

CLASS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "local"},
    "provisioner": "example.com/disks",
    "volumeBindingMode": "WaitForFirstConsumer",
}
CLAIM = {
    "accessModes": ["ReadWriteOnce"],
    "storageClassName": "local",
    "resources": {"requests": {"storage": "1Gi"}},
}
NODE = {"kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": 3, "pods": 110}}}


def pod(name="p", template=None, **spec):
    source = {
        "volumeClaimTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": CLAIM} if template is None else template
    }
    volumes = [{"name": "scratch", "ephemeral": source}]
    containers = [{"name": "c", "resources": {"requests": {"cpu": 1}}}]
    spec = {"schedulerName": "bayplan", "containers": containers, "volumes": volumes, **spec}
    return {"kind": "Pod", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
def read(tmp_path):
    def read(*objects, added=(), removed=()):
        for name, items in (("in.json", objects), ("more.json", added)):
            (tmp_path / name).write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        changes = Changes(add=[str(tmp_path / "more.json")] if added else (), remove=removed)
        return read_cluster([str(tmp_path / "in.json")], changes)

    return read


def outcome(cluster):
    simulator = Simulator(default_configuration())
    simulator.add(cluster)
    (report,) = simulator.run().pods
    return report.attempts[-1].node or report.attempts[-1].message


def test_a_pod_gets_the_claim_that_its_template_describes(read):
    assert outcome(read(NODE, CLASS, pod())) == "n1"


def test_what_the_claim_asks_for_counts(read):
    lost = {"metadata": {}, "spec": {**CLAIM, "storageClassName": "none"}}
    assert "pod has unbound immediate PersistentVolumeClaims" in outcome(read(NODE, CLASS, pod(template=lost)))


def test_a_claim_of_somebody_else_stays_and_keeps_the_pod_waiting(read):
    claim = {"kind": "PersistentVolumeClaim", "metadata": {"name": "p-scratch"}, "spec": CLAIM}
    assert "PVC default/p-scratch was not created for pod default/p" in outcome(read(NODE, CLASS, claim, pod()))


@pytest.mark.parametrize("template", [5, {"spec": {"accessModes": 5}}, {}], ids=str)
def test_a_template_that_would_be_refused_makes_no_claim_and_no_crash(read, template):
    told = outcome(read(NODE, CLASS, pod(template=template)))
    assert told.startswith("0/1 nodes are available: ")


def test_each_copy_that_is_counted_has_a_claim_of_its_own(read):
    configuration = default_configuration()
    simulator = Simulator(configuration)
    objects = read(NODE, CLASS, added=[pod()])
    ((counted,),) = objects.added
    objects.pods = []
    simulator.add(objects)
    found = how_many_fit(simulator, configuration, counted, None)
    assert (found.pod, found.fits) == ("default/p", 3)


GPUS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "gpu"},
    "spec": {"spec": {"devices": {"requests": [{"name": "one", "exactly": {"deviceClassName": "gpu"}}]}}},
}


def pod_with_devices(name, entries, **status):
    containers = [{"name": "c", "resources": {"requests": {"cpu": 1}}}]
    spec = {"schedulerName": "bayplan", "containers": containers, "resourceClaims": entries}
    return {"kind": "Pod", "metadata": {"name": name}, "spec": spec, "status": status}


def made(cluster):
    """The claims that there are, and by pod the names of its claims."""
    simulator = Simulator(default_configuration())
    simulator.add(cluster)
    claims = simulator.cache.listers.of(ResourceClaim).objects
    waiting = [simulator.queue.get(uid).pod_info for uid in simulator.queue.uids()]
    named = {
        info.name: {each.name: each.resource_claim_name for each in info.pod.status.resource_claim_statuses or ()}
        for info in waiting
    }
    return claims, named


def test_each_pod_gets_the_claim_on_devices_that_its_template_describes(read):
    pods = [pod_with_devices(name, [{"name": "accelerator", "resourceClaimTemplateName": "gpu"}]) for name in "ab"]
    claims, named = made(read(NODE, GPUS, *pods))
    assert named == {"a": {"accelerator": "a-accelerator"}, "b": {"accelerator": "b-accelerator"}}
    (asked,) = claims["default/a-accelerator"].spec.devices.requests
    assert (asked.exactly.device_class_name, asked.exactly.allocation_mode, asked.exactly.count) == (
        "gpu",
        "ExactCount",
        1,
    )
    assert [each.name for each in claims["default/b-accelerator"].metadata.owner_references] == ["b"]


def test_a_claim_on_devices_that_was_made_already_stays(read):
    entries = [{"name": "accelerator", "resourceClaimTemplateName": "gpu"}]
    statuses = [{"name": "accelerator", "resourceClaimName": "a-accelerator-x7kp2"}]
    claims, named = made(read(NODE, GPUS, pod_with_devices("a", entries, resourceClaimStatuses=statuses)))
    assert (claims, named) == ({}, {"a": {"accelerator": "a-accelerator-x7kp2"}})


def test_a_pod_whose_template_is_missing_has_no_claim(read):
    entries = [
        {"name": "shared", "resourceClaimName": "pool"},
        {"name": "own", "resourceClaimTemplateName": "nowhere"},
    ]
    assert made(read(NODE, GPUS, pod_with_devices("a", entries))) == ({}, {"a": {}})


@pytest.mark.parametrize("removed", ["resourceclaimtemplate/gpu", "resourceclaimtemplates/default/gpu"])
def test_a_template_that_is_removed_makes_no_claim(read, removed):
    entries = [{"name": "own", "resourceClaimTemplateName": "gpu"}]
    assert made(read(NODE, GPUS, pod_with_devices("a", entries), removed=[removed])) == ({}, {"a": {}})


@pytest.mark.parametrize("source", ["resourceClaimName", "resourceClaimTemplateName"])
def test_a_pod_whose_claim_on_devices_is_missing_is_unschedulable_and_not_gated(read, source):
    entries = [{"name": "accelerator", source: "nowhere"}]
    gated = pod_with_devices("b", entries)
    gated["spec"]["schedulingGates"] = [{"name": "example.com/hold"}]
    simulator = Simulator(default_configuration())
    simulator.add(read(NODE, pod_with_devices("a", entries), gated))
    summary = simulator.run().summary
    assert (summary.scheduled, summary.unschedulable, summary.gated) == (0, 1, 1)


CLASS_OF_DEVICES = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "gpu"},
    "spec": {"selectors": [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}]},
}
SLICE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "n1-gpus"},
    "spec": {
        "driver": "gpu.example.com",
        "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
        "nodeName": "n1",
        "devices": [{"name": "gpu-0"}],
    },
}


def test_the_report_says_what_a_claim_got(read):
    entries = [{"name": "accelerator", "resourceClaimTemplateName": "gpu"}]
    pods = [pod_with_devices(name, entries) for name in "ab"]
    simulator = Simulator(default_configuration())
    simulator.add(read(NODE, GPUS, CLASS_OF_DEVICES, SLICE, *pods))
    told = json.loads(b"".join(ExplainedAttempts().pieces(simulator.run())))
    first, second = told["pods"]
    (device,) = first["claims"]["a-accelerator"]["results"]
    assert device == {"request": "one", "driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}
    assert first["claims"]["a-accelerator"]["nodeSelector"]["nodeSelectorTerms"]
    assert (second["claims"], second["attempts"][-1]["node"]) == ({}, None)


PROVIDED = {**CLASS_OF_DEVICES, "spec": {**CLASS_OF_DEVICES["spec"], "extendedResourceName": "example.com/gpu"}}


def pod_by_name(name):
    """A pod that asks for the extended resource that the class provides."""
    pod, amounts = pod_with_devices(name, []), {"example.com/gpu": 1}
    pod["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    return pod


@pytest.mark.parametrize("plugin", [{}, {"example.com/gpu": 2}], ids=["devices", "and a device plugin elsewhere"])
def test_pods_that_ask_for_what_a_class_provides_are_counted_by_its_devices(read, plugin):
    other = {"kind": "Node", "metadata": {"name": "n2"}, "status": {"allocatable": {"cpu": 3, "pods": 110, **plugin}}}
    configuration = default_configuration()
    simulator = Simulator(configuration)
    objects = read(NODE, other, PROVIDED, SLICE, added=[pod_by_name("a")])
    ((counted,),) = objects.added
    objects.pods = []
    simulator.add(objects)
    found = how_many_fit(simulator, configuration, counted, None)
    assert found.per_node == ({"n1": 1, "n2": 2} if plugin else {"n1": 1})
    assert "cannot allocate all claims" in found.stopped_by


def test_the_report_says_what_stands_for_extended_resources(read):
    pods = [pod_by_name(name) for name in "ab"]
    simulator = Simulator(default_configuration())
    simulator.add(read(NODE, PROVIDED, SLICE, *pods))
    told = json.loads(b"".join(ExplainedAttempts().pieces(simulator.run())))
    first, second = told["pods"]
    (device,) = first["claims"]["<extended-resources>"]["results"]
    named = "container-0-request-0"
    assert device == {"request": named, "driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}
    assert "claims" not in second
    assert "cannot allocate all claims" in second["attempts"][-1]["message"]
    # The node has the device, though no device plugin offers one there.
    assert (told["summary"]["overcommittedNodes"], told["summary"]["lowerBoundNodes"]) == (0, 1)
