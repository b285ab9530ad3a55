"""A redacted snapshot has the same decisions come of it, in every scene that the recordings are made of."""

import json
from uuid import NAMESPACE_URL, uuid5

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.oracle.configurations import CONFIGURATIONS
from tests.oracle.families.family import ALL_FAMILIES, scene_of
from tests.simulate.explained import run_explained
from tests.snapshot.snapshots import read_objects, redacted, text_of

from bayplan.api.kinds import CLAIM_TEMPLATES, RESOURCES
from bayplan.cli.config import load_checked
from bayplan.simulate.cluster import read_cluster
from bayplan.simulate.simulator import Simulator

API_VERSIONS = {resource.kind: resource.api_version for resource in (*RESOURCES, CLAIM_TEMPLATES)}
WITH_DEVICES = "devices"
"""A redacted snapshot has no devices: expressions quote names and values."""
FAMILIES = sorted(
    name
    for name, family in ALL_FAMILIES.items()
    if not any("extenders" in CONFIGURATIONS[each] for each in family.configurations)
)


def items_of(scene):
    """The objects of a scene as a cluster has them: each with a uid, and the claim of each ephemeral volume made.

    A snapshot leaves out the templates of such claims.
    """
    items = [
        {"apiVersion": API_VERSIONS[each["kind"]], **each} for each in scene.objects if each["kind"] in API_VERSIONS
    ]
    items += [{"apiVersion": "v1", "kind": "Node", **node} for node in scene.nodes]
    items += [{"apiVersion": "v1", "kind": "Pod", **pod} for pod in (*scene.placed, *scene.incoming)]
    items = [
        {**item, "metadata": {"uid": str(uuid5(NAMESPACE_URL, str(number))), **item["metadata"]}}
        for number, item in enumerate(items)
    ]
    known = set(map(key_of, items))
    made = (each for item in items if item["kind"] == "Pod" for each in ephemeral_claims(item))
    return items + [each for each in made if key_of(each) not in known]


def key_of(item):
    return item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"]


def ephemeral_claims(pod):
    """The claims that the controller of ephemeral volumes makes for a pod."""
    metadata = pod["metadata"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"], "controller": True}
    for volume in pod["spec"].get("volumes", ()):
        if "ephemeral" in volume:
            name = f"{metadata['name']}-{volume['name']}"
            yield {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {
                    "uid": str(uuid5(NAMESPACE_URL, f"{metadata['uid']} {name}")),
                    "name": name,
                    "namespace": metadata["namespace"],
                    "ownerReferences": [owner],
                },
                "spec": volume["ephemeral"]["volumeClaimTemplate"]["spec"],
            }


def labels_named_by(document):
    """The keys of labels that a configuration names."""
    if isinstance(document, list):
        return {key for each in document for key in labels_named_by(each)}
    if not isinstance(document, dict):
        return set()
    own = {document[name] for name in ("topologyKey", "key") if isinstance(document.get(name), str)}
    return own | {key for each in document.values() for key in labels_named_by(each)}


def decisions(configuration, text, folder):
    """The attempts of each pod, with nodes and pods by their place in the file."""
    file = folder / "cluster.json"
    file.write_bytes(text)
    objects = read_cluster([str(file)])
    assert not objects.skipped
    nodes = {node.metadata.name: number for number, node in enumerate(objects.nodes)}
    pods = {pod.key: number for number, pod in enumerate(objects.pods)}
    simulator = Simulator(configuration)
    simulator.add(objects)
    report = run_explained(simulator)
    return [
        (
            pods[f"{pod.namespace}/{pod.name}"],
            [
                (
                    nodes.get(attempt.node),
                    nodes.get(attempt.nominated_node_name),
                    [pods[victim] for victim in attempt.victims],
                    attempt.feasible_nodes,
                    {
                        nodes[name]: (verdict.rejected_by, verdict.scores, verdict.score)
                        for name, verdict in (attempt.nodes or {}).items()
                    },
                )
                for attempt in pod.attempts
            ],
        )
        for pod in report.pods
    ]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_snapshot_and_a_redacted_one_decide_as_the_cluster_does(family, tmp_path_factory):
    folder = tmp_path_factory.mktemp(family)

    @settings(max_examples=examples(4), deadline=None)
    @given(st.integers(0, 2**32), st.integers(0, 200))
    def check(seed, index):
        name, scene = scene_of(family, seed, index)
        config = folder / "config.json"
        config.write_text(json.dumps(CONFIGURATIONS[name]))
        configuration = load_checked(config, None, None, [])
        items = items_of(scene)
        objects = read_objects(items)
        expected = decisions(configuration, json.dumps({"kind": "List", "items": items}).encode(), folder)
        assert expected
        assert decisions(configuration, text_of(objects), folder) == expected
        if family != WITH_DEVICES:
            hidden = redacted(objects, labels_named_by(CONFIGURATIONS[name]))
            assert decisions(configuration, text_of(hidden), folder) == expected

    check()
