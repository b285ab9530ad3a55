import json
from typing import get_args, get_origin, get_type_hints

import msgspec
import pytest
from tests.snapshot.snapshots import read_objects, redacted, text_of

from bayplan.snapshot.hashes import Hashes
from bayplan.snapshot.listing import trimmed
from bayplan.snapshot.redaction import KEPT, Redaction
from bayplan.snapshot.snapshot import KINDS

STAYS = {*KEPT, *(f"a key of {name}" for name in KEPT), "kind", "api_version", "disrupted_pods"}
"""Fields that the document says stay; those of disruptedPods are times."""
HASHES = Hashes(b"key")


def filled(kind, path=""):
    """A struct of the type with text in every field that holds any, which names the field."""
    if kind is str:
        return f"tell-{path}"
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        hints = get_type_hints(kind)
        return kind(**{name: filled(hint, name) for name, hint in hints.items() if name != "conditions"})
    arguments = [each for each in get_args(kind) if each is not type(None)]
    if get_origin(kind) is list:
        return [filled(arguments[0], path)]
    if get_origin(kind) is dict:
        return {f"tell-key-{path}": f"tell-{path}"}
    if arguments:
        return filled(arguments[0], path)
    return kind() if kind in (int, bool, float) else None


@pytest.mark.parametrize("resource", [each for each in KINDS if not each.rare], ids=lambda each: each.plural)
def test_every_text_is_replaced_but_those_that_the_document_says_stay(resource):
    obj = trimmed(filled(resource.type))
    (_, anew), *_ = redacted([(resource, obj)])
    left = set()

    def look(value, path):
        if isinstance(value, str) and "tell" in value:
            left.add(path)
        elif isinstance(value, list):
            for each in value:
                look(each, path)
        elif isinstance(value, dict):
            for key, each in value.items():
                look(key, f"a key of {path}")
                look(each, path)
        elif isinstance(value, msgspec.Struct):
            for name in value.__struct_fields__:
                look(getattr(value, name), name)

    look(anew, "")
    assert left <= STAYS


def test_equal_texts_have_equal_hashes_and_another_key_others():
    assert HASHES.text("a") == Hashes(b"key").text("a") != Hashes(b"other").text("a")
    assert HASHES.text("a") != HASHES.text("b")
    assert HASHES.text("") == ""


def test_names_that_every_cluster_has_stay():
    assert HASHES.name("kube-system") == "kube-system"
    assert HASHES.name("system-node-critical") == "system-node-critical"
    assert HASHES.name("acme") != "acme"


def test_kubernetes_own_label_keys_stay_and_their_values_do_not():
    assert HASHES.label_key("topology.kubernetes.io/zone") == "topology.kubernetes.io/zone"
    assert HASHES.label_key("node-role.kubernetes.io/acme") != "node-role.kubernetes.io/acme"
    assert HASHES.label_key("acme.example/team") != "acme.example/team"
    assert HASHES.label_value("topology.kubernetes.io/zone", "acme-1-a") != "acme-1-a"


def test_labels_that_a_configuration_names_may_stay():
    hashes = Hashes(b"key", kept={"rack"})
    assert (hashes.label_key("rack"), hashes.label_value("rack", "r1")) == ("rack", "r1")


def test_what_is_no_label_stays_none():
    assert HASHES.label_value("a", "no label").endswith("!")
    assert HASHES.label_key("no label").endswith("!")


def test_a_region_is_what_its_zones_begin_with():
    def zone(value):
        return HASHES.label_value("topology.kubernetes.io/zone", value)

    assert zone("us-east1-b__us-east1-c").split("__") == [zone("us-east1-b"), zone("us-east1-c")]
    assert zone("us-east1-b").rsplit("-", 1)[0] == zone("us-east1")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("aws://us-east-1a/vol-1", "vol-1"),
        ("aws:///vol-1", "vol-1"),
    ],
)
def test_two_ways_to_write_a_disk_of_aws_stay_the_same_disk(first, second):
    assert HASHES.disk(first).removeprefix("aws://zone/") == HASHES.disk(second)
    assert HASHES.disk(first) != first


def test_a_disk_of_gce_is_named_in_its_zone():
    handle = HASHES.disk("projects/UNSPECIFIED/zones/us-east1-b/disks/data")
    zone = HASHES.label_value("topology.kubernetes.io/zone", "us-east1-b")
    assert handle == f"projects/UNSPECIFIED/zones/{zone}/disks/{HASHES.disk('data')}"


def test_drivers_of_clouds_stay_and_others_do_not():
    assert HASHES.driver("ebs.csi.aws.com") == "ebs.csi.aws.com"
    assert HASHES.driver("kubernetes.io/no-provisioner") == "kubernetes.io/no-provisioner"
    assert HASHES.driver("csi.acme.example") != "csi.acme.example"


def test_an_image_without_a_tag_is_the_one_that_nodes_list_with_latest():
    assert HASHES.wanted_image("nginx") == HASHES.image("nginx:latest")
    assert HASHES.wanted_image("nginx:1") == HASHES.image("nginx:1")


def database(replicas=3):
    meta = {"name": "db", "namespace": "acme", "uid": "1", "resourceVersion": "1"}
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "1", "controller": True}
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}
    pod = {
        "metadata": {**meta, "name": "db-0", "uid": "2", "labels": {"app": "db"}, "ownerReferences": [owner]},
        "spec": {"containers": [{"name": "c"}], "volumes": [volume, {"name": "scratch", "ephemeral": {}}]},
    }
    claims = [
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {**meta, "name": name, "uid": str(number)}}
        for number, name in enumerate(("data-db-0", "data-db-1", "db-0-scratch", "data-db-0-more"))
    ]
    template = {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "c"}]}}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "db"}},
        "template": template,
        "volumeClaimTemplates": [{"metadata": {"name": "data"}}],
    }
    return [
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": meta, "spec": spec},
        {"apiVersion": "v1", "kind": "Pod", **pod},
        *claims,
    ]


def test_pods_and_claims_of_a_stateful_set_keep_their_numbers_and_what_they_are_called_after():
    text = text_of(redacted(read_objects(database())))
    objects = json.loads(text)["items"]
    names = {each["kind"]: [] for each in objects}
    for each in objects:
        names[each["kind"]].append(each["metadata"]["name"])
    (owner,), (pod,) = names["StatefulSet"], names["Pod"]
    template = objects[0]["spec"]["volumeClaimTemplates"][0]["metadata"]["name"]
    volumes = next(each for each in objects if each["kind"] == "Pod")["spec"]["volumes"]
    assert pod == f"{owner}-0"
    assert names["PersistentVolumeClaim"][:3] == [
        f"{template}-{owner}-0",
        f"{template}-{owner}-1",
        f"{pod}-{volumes[1]['name']}",
    ]
    assert volumes[0]["persistentVolumeClaim"]["claimName"] == names["PersistentVolumeClaim"][0]
    assert b"db" not in text.replace(b"namespace", b"")
    assert b"acme" not in text


def test_two_snapshots_of_a_cluster_have_nothing_in_common_unless_the_key_is_the_same():
    objects = read_objects(database())
    assert text_of(redacted(objects, key=b"1")) != text_of(redacted(objects, key=b"2"))
    assert text_of(redacted(objects, key=b"1")) == text_of(redacted(objects, key=b"1"))


def test_numbers_that_are_compared_stay_numbers_and_others_do_not():
    requirement = {"key": "cores", "operator": "Gt", "values": ["4"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}
    pod = {
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {
            "containers": [{"name": "c"}],
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
        },
    }
    node = {"metadata": {"name": "n", "labels": {"cores": "8", "room": "8"}}}
    objects = read_objects([{"apiVersion": "v1", "kind": "Pod", **pod}, {"apiVersion": "v1", "kind": "Node", **node}])
    labels = json.loads(text_of(redacted(objects)))["items"][1]["metadata"]["labels"]
    assert list(labels.values()).count("8") == 1


def test_kinds_of_owners_that_nobody_knows_are_told_by_no_name():
    owner = {"apiVersion": "acme.example/v1", "kind": "Acme", "name": "a", "uid": "u", "controller": True}
    meta = {"name": "p", "namespace": "default", "ownerReferences": [owner]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [{"name": "c"}]}}
    text = text_of(redacted(read_objects([pod])))
    assert b"cme" not in text


def test_a_redaction_is_of_the_objects_it_was_made_for():
    redaction = Redaction([], b"key")
    (_, obj) = read_objects([{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}])[0]
    assert redaction(obj).metadata.name == HASHES.name("n")


def test_a_pod_finds_its_runtime_class_and_its_nodes_under_their_new_names():
    items = [
        {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "acme"}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"runtimeClassName": "acme"}},
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"acme": "yes"}}},
    ]
    items[0]["scheduling"] = {"nodeSelector": {"acme": "yes"}}
    runtime, pod, node = (obj for _, obj in redacted(read_objects(items)))
    assert pod.spec.runtime_class_name == runtime.metadata.name != "acme"
    assert runtime.scheduling.node_selector == node.metadata.labels != {"acme": "yes"}
