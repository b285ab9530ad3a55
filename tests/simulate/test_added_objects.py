"""Objects of `--add` are created anew: what only the API server says of an object is not taken from them."""

import json

import pytest

from bayplan.simulate.changes import Changes
from bayplan.simulate.cluster import read_cluster

SPEC = {"schedulerName": "bayplan", "containers": [{"name": "c", "resources": {"requests": {"cpu": 1}}}]}
LEAVING = "2026-01-01T00:00:00Z"


def pod(**metadata):
    return {"kind": "Pod", "metadata": metadata, "spec": SPEC}


def job(**fields):
    spec = {"template": {"spec": {**SPEC, "restartPolicy": "Never"}}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec, **fields}


def namespace(name, **metadata):
    return {"kind": "Namespace", "metadata": {"name": name, **metadata}}


@pytest.fixture
def adding(tmp_path):
    def adding(*added, to=()):
        for name, items in (("in.json", to), ("more.json", added)):
            (tmp_path / name).write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        return read_cluster([str(tmp_path / "in.json")], Changes(add=[str(tmp_path / "more.json")]))

    return adding


@pytest.mark.parametrize(
    "said", [{"status": {"phase": "Succeeded"}}, {"metadata": {"name": "p", "deletionTimestamp": LEAVING}}], ids=str
)
def test_an_added_pod_is_new_whatever_its_file_says(adding, said):
    (info,) = adding({**pod(name="p"), **said}).pods
    assert (info.pod.status.phase, info.is_terminating, info.pod.metadata.creation_timestamp) == ("", False, None)


def test_a_pod_of_the_cluster_stays_what_it_is(adding):
    done = {**pod(name="done"), "status": {"phase": "Succeeded"}}
    assert [each.pod.status.phase for each in adding(pod(name="p"), to=[done]).pods] == ["Succeeded", ""]


def test_an_added_workload_is_deleted_by_nobody(adding):
    added = job(metadata={"name": "j", "deletionTimestamp": LEAVING})
    assert [each.name for each in adding(added).pods] == ["j-1"]


@pytest.mark.parametrize("added", [pod(name="p", namespace="old"), job(metadata={"name": "j", "namespace": "old"})])
def test_nothing_is_created_in_a_namespace_that_is_being_deleted(adding, added):
    there = pod(name="there", namespace="old")
    cluster = adding(added, pod(name="q"), to=[namespace("old", deletionTimestamp=LEAVING), namespace("new"), there])
    assert [each.key for each in cluster.pods] == ["old/there", "default/q"]
    (skipped,) = cluster.skipped
    assert skipped.message.endswith("metadata.namespace: Namespace 'old' is being terminated")


def test_objects_with_a_generate_name_alone_get_names_as_those_of_the_api_server(adding):
    made = adding(
        pod(generateName="p-"), pod(generateName="p-"), pod(generateName="x" * 80), job(metadata={"generateName": "j-"})
    )
    assert [each.name for each in made.pods] == ["p-00001", "p-00002", f"{'x' * 58}00003", "j-00004-1"]
    assert made.skipped == []


def test_an_object_with_neither_is_refused(adding):
    (skipped,) = adding(pod(labels={"a": "b"})).skipped
    assert skipped.message == "metadata.name: Required value"
