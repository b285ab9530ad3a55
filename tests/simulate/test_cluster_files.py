import contextlib
import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.api.kinds import RESOURCES
from bayplan.simulate.cluster import read_cluster
from bayplan.simulate.documents import ClusterFileError

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1"},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": 10}},
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p1"},
    "spec": {"schedulerName": "bayplan", "containers": [{"name": "c", "resources": {"requests": {"cpu": 1}}}]},
}


@pytest.fixture
def read(tmp_path):
    def read(*contents, name="cluster.yaml"):
        files = []
        for number, content in enumerate(contents):
            path = tmp_path / (name if number == 0 else f"{number}-{name}")
            if isinstance(content, bytes):
                path.write_bytes(content)
            else:
                path.write_text(content if isinstance(content, str) else json.dumps(content))
            files.append(str(path))
        return read_cluster(files)

    return read


def error_of(read, *contents):
    with pytest.raises(ClusterFileError) as caught:
        read(*contents)
    text = str(caught.value)
    assert "\n" not in text
    return text.rsplit("/", maxsplit=1)[-1]


def named(pod_name, **spec):
    return {**POD, "metadata": {"name": pod_name}, "spec": {**POD["spec"], **spec}}


def test_a_single_object_is_read_from_json_and_from_yaml(read):
    assert [n.metadata.name for n in read(NODE).nodes] == ["n1"]
    assert [n.metadata.name for n in read("kind: Node\nmetadata: {name: n2}\n").nodes] == ["n2"]


def test_documents_of_one_file_and_several_files_add_up(read):
    one = "kind: Node\nmetadata: {name: a}\n---\nkind: Node\nmetadata: {name: b}\n"
    assert [n.metadata.name for n in read(one, NODE).nodes] == ["a", "b", "n1"]


@pytest.mark.parametrize("kind", ["List", "PodList"])
def test_lists_are_taken_apart(read, kind):
    pods = [POD, named("p2")]
    if kind == "PodList":
        # The API server's own lists do not repeat the kind in their items.
        pods = [{key: value for key, value in pod.items() if key not in ("kind", "apiVersion")} for pod in pods]
    cluster = read({"apiVersion": "v1", "kind": kind, "items": pods})
    assert [pod.key for pod in cluster.pods] == ["default/p1", "default/p2"]


def test_a_list_whose_items_are_null_is_an_empty_list(read):
    assert read('{"apiVersion": "v1", "kind": "List", "items": null}').pods == []


def test_json_documents_one_after_the_other_are_read_as_yaml(read):
    assert len(read(f"{json.dumps(NODE)}\n---\n{json.dumps(POD)}\n").pods) == 1


def test_nulls_count_as_absent_as_for_the_api_server(read):
    pod = {**POD, "metadata": {"name": "p1", "namespace": None, "labels": {"a": None}}, "status": None}
    given = "spec: {containers: [{name: c}], nodeSelector: null}"
    assert [p.key for p in read(pod).pods] == ["default/p1"]
    assert [p.key for p in read(f"kind: Pod\nmetadata: {{name: p1, namespace: null}}\n{given}\nstatus:\n").pods] == [
        "default/p1"
    ]


def test_a_byte_order_mark_is_no_part_of_the_text(read):
    assert len(read(b"\xef\xbb\xbf" + json.dumps(NODE).encode()).nodes) == 1


def test_other_kinds_are_counted_and_ignored(read):
    longhorn = {"apiVersion": "longhorn.io/v1beta2", "kind": "Node", "metadata": {"name": "n1"}}
    secret = {"apiVersion": "v1", "kind": "Secret"}
    foreign = {"apiVersion": "serving.knative.dev/v1", "kind": "Service"}
    cluster = read(NODE, longhorn, secret, secret, foreign)
    assert cluster.ignored_kinds == {"Node": 1, "Secret": 2, "Service": 1}
    assert cluster.looked_up == []


@pytest.mark.parametrize("json_or_yaml", [json.dumps, lambda content: "---\n" + json.dumps(content)])
@pytest.mark.parametrize("more", [{}, {"items": ["a", "b"]}, {"items": [{"kind": 7}]}])
def test_a_named_object_is_no_list_though_its_kind_ends_like_one(read, more, json_or_yaml):
    allowed = {"apiVersion": "example.com/v1", "kind": "AllowList", "metadata": {"name": "x"}, **more}
    assert read(json_or_yaml(allowed)).ignored_kinds == {"AllowList": 1}
    inside = {"apiVersion": "v1", "kind": "List", "items": [allowed]}
    assert read(json_or_yaml(inside)).ignored_kinds == {"AllowList": 1}


def test_other_versions_of_kinds_that_are_used_are_counted_and_ignored(read):
    node, pod = {**NODE, "apiVersion": "v99"}, {**POD, "apiVersion": "v2"}
    old = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PriorityClass", "metadata": {"name": "x"}, "value": 5}
    budget = {"apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget", "metadata": {"name": "x"}}
    cluster = read(node, pod, old, budget)
    assert (cluster.nodes, cluster.pods, cluster.looked_up) == ([], [], [])
    assert cluster.ignored_kinds == {"Node": 1, "Pod": 1, "PodDisruptionBudget": 1, "PriorityClass": 1}


@pytest.mark.parametrize("again", ["pods.yaml", "./pods.yaml", "link.yaml"])
def test_a_file_given_twice_is_an_error_under_whatever_name(tmp_path, monkeypatch, again):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pods.yaml").write_text(json.dumps(POD))
    (tmp_path / "link.yaml").symlink_to("pods.yaml")
    with pytest.raises(ClusterFileError, match=f"^{again}: is given twice$"):
        read_cluster(["pods.yaml", again])


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.kind)
def test_every_kind_that_plugins_look_up_is_read(read, resource):
    obj = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "x"}}
    typed_list = {
        "apiVersion": resource.api_version,
        "kind": f"{resource.kind}List",
        "items": [{"metadata": {"name": "y"}}],
    }
    cluster = read(obj, typed_list)
    assert cluster.ignored_kinds == {}
    assert [type(found) for found in cluster.looked_up] == [resource.type] * 2
    assert [found.metadata.name for found in cluster.looked_up] == ["x", "y"]
    assert {found.metadata.namespace for found in cluster.looked_up} == {"default" if resource.namespaced else ""}


def test_of_what_plugins_look_up_the_fields_they_read_are_kept(read):
    services = "kind: Service\nmetadata: {name: web, namespace: shop}\nspec: {selector: {app: web}}\n"
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "annotations": {"pv.kubernetes.io/bind-completed": "yes", "other": "text"}},
        "spec": {"volumeName": "pv1", "resources": {"requests": {"storage": "1Gi"}}},
    }
    service, found = read(services, claim).looked_up
    assert (service.metadata.namespace, service.spec.selector) == ("shop", {"app": "web"})
    assert found.spec.volume_name == "pv1"
    assert found.metadata.annotations.bind_completed == "yes"


def test_an_object_given_twice_is_an_error_that_names_both_places(read):
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
    same = {**service, "metadata": {"name": "web", "namespace": "default"}}
    elsewhere = {**service, "metadata": {"name": "web", "namespace": "other"}}
    assert len(read(service, elsewhere).looked_up) == 2
    with pytest.raises(ClusterFileError, match=r'Service "web": .*this Service was given before, in .*/cluster\.yaml$'):
        read(service, same)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "cluster.yaml: is empty"),
        (
            '{"kind": "Node",\n "metadata": {"name": "\\ud800"}}\n',
            "is not valid JSON: invalid utf-16 surrogate pair at the end",
        ),
        ('{"kind": "\\ud83d\\ude0', "is not valid JSON: Input data was truncated"),
        ('{"kind": "a\\\\ud800"', "is not valid JSON: Input data was truncated"),
        (" \n ", "cluster.yaml: is empty"),
        ("# nothing\n---\n", "cluster.yaml: holds no objects"),
        (b"\x7fELF\0\0", "cluster.yaml: is not a text file"),
        (b"kind: Node\nmetadata: {name: \xff}\n", "cluster.yaml: is not UTF-8 text: line 2"),
        ('{"kind": "Node",\n "metadata": }', "cluster.yaml: is not valid JSON: line 2: invalid character"),
        ('{"kind": "Node"', "cluster.yaml: is not valid JSON: Input data was truncated"),
        ("a: [", "cluster.yaml: is not valid YAML: line 2: did not find expected node content"),
        ("a: \x01", "cluster.yaml: is not valid YAML: character 3 is not allowed"),
        ("a: 1\nb: 2\na: 3\n", 'cluster.yaml: is not valid YAML: line 3: key "a" is given twice'),
        ("spec:\n  x: 1\n  x: 2\n", 'cluster.yaml: is not valid YAML: line 3: spec: key "x" is given twice'),
        ("a: &a [*a]", 'line 1: a[0]: alias "a" is inside its own value'),
        ("a: {<<: 5}", "only mappings can be merged with <<"),
        ("a: " + "[" * 100, "is nested more than 64 levels deep"),
        ("just text", "cluster.yaml: document 1: Invalid value: string: must be an object with apiVersion and kind"),
        ("[1, 2]", "cluster.yaml: Invalid value: list: must be an object with apiVersion and kind"),
        ("- 1\n- 2\n", "cluster.yaml: document 1: Invalid value: list: must be an object"),
        ("kind: Node\nmetadata: {name: a}\n---\nfoo: bar\n", "cluster.yaml: document 2: kind: Required value"),
        ("kind: 5\n", "cluster.yaml: document 1: kind: Invalid value: integer: must be a string"),
        ('{"kind": "List", "items": {"a": 1}}', "cluster.yaml: items: Invalid value: object: must be a list"),
        ('{"kind": "List", "itms": []}', "cluster.yaml: items: Required value"),
        ("kind: List\nitems: 7\n", "cluster.yaml: document 1: items: Invalid value: integer: must be a list"),
        ('{"kind": "List", "items": [{"kind": "List"}]}', "cluster.yaml: items[0]: a list inside a list"),
        ('{"kind": "List", "items": [{}]}', "cluster.yaml: items[0]: kind: Required value"),
        ('{"kind": "List", "items": [7]}', "cluster.yaml: items[0]: Invalid value: integer: must be an object"),
        (
            "kind: Node\nmetadata: {name: a}\n---\nkind: Node\nmetadata: {name: x}\nspec: {taints: [{key: 5}]}\n",
            'cluster.yaml: document 2: Node "x": spec.taints[0].key: Invalid value: integer: must be a string',
        ),
        (
            '{"kind": "Node", "metadata": {"name": "x"}, "spec": {"taints": [{"key": 5}]}}',
            'cluster.yaml: Node "x": spec.taints[0].key: Invalid value: integer: must be a string',
        ),
        (
            "kind: Node\nmetadata: {name: x}\nstatus: {allocatable: {cpu: lots}}\n",
            'cluster.yaml: document 1: Node "x": status.allocatable[cpu]: ',
        ),
        ("kind: Node\n", "cluster.yaml: document 1: Node: metadata.name: Required value"),
        ('{"kind": "Node", "metadata": {"name": "Not Valid"}}', "is not a valid name"),
        (
            "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: many\n",
            'cluster.yaml: document 1: PriorityClass "high": value: Invalid value: string: must be an integer',
        ),
        (
            "kind: Service\nmetadata: {name: web}\nspec: {selector: [a]}\n",
            'cluster.yaml: document 1: Service "web": spec.selector: Invalid value: list: must be an object',
        ),
        (
            "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: -fast}\n",
            "document 1: StorageClass \"-fast\": metadata.name: '-fast' is not a valid name",
        ),
        (
            "kind: PersistentVolume\nmetadata: {name: pv}\nspec: {capacity: {storage: lots}}\n",
            "document 1: PersistentVolume \"pv\": spec.capacity[storage]: not a quantity: 'lots'",
        ),
        (
            "kind: PersistentVolumeClaim\nmetadata: {name: c}\nspec: {resources: {requests: {storage: 1x}}}\n",
            'document 1: PersistentVolumeClaim "c": spec.resources.requests[storage]: not a quantity',
        ),
        (
            "apiVersion: storage.k8s.io/v1\nkind: CSIStorageCapacity\nmetadata: {name: c}\nmaximumVolumeSize: 1x\n",
            'document 1: CSIStorageCapacity "c": maximumVolumeSize: not a quantity',
        ),
        ("kind: Pod\nmetadata:\n\tname: x\n", "any token; YAML is indented by spaces, and not by tabs"),
        (
            "kind: Pod\nmetadata:\n  name: {{ .Values.name }}\n",
            "3: metadata.name: a key must be a string; a template has to be rendered first, as `helm template` does",
        ),
        (
            "{{- if .Values.on }}\nkind: Pod\n{{- end }}\n",
            "line 1: a key must be a string; a template has to be rendered first, as `helm template` does",
        ),
        (
            "- kind: Pod\n",
            "must be an object with apiVersion and kind; several objects are documents, or items of a List",
        ),
        (
            '[{"kind": "Pod"}]',
            "must be an object with apiVersion and kind; several objects are documents, or items of a List",
        ),
    ],
)
def test_a_malformed_file_is_one_clear_error(read, content, message):
    assert message in error_of(read, content)


@pytest.mark.parametrize("kind", ["Node", "Pod", "Secret"])
def test_a_short_file_cannot_unfold_into_millions_of_values(read, kind):
    ten = ", ".join(["*{0}"] * 10)
    levels = "".join(
        f"{name}: &{name} [{ten.format(before)}]\n" for before, name in zip("abcdef", "bcdefg", strict=True)
    )
    text = f"apiVersion: v1\nkind: {kind}\nmetadata: {{name: x}}\na: &a [{{}}]\n{levels}"
    assert "holds more than 400000 values behind aliases" in error_of(read, text)


def test_a_node_given_twice_is_an_error_that_names_both_places(read):
    with pytest.raises(ClusterFileError, match=r"1-cluster.*: this node was given before, in .*/cluster\.yaml$"):
        read(NODE, NODE)


def test_a_priority_class_given_twice_is_an_error_that_names_both_places(read):
    one = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "hi"}, "value": 5}
    with pytest.raises(ClusterFileError, match=r'PriorityClass "hi": .*was given before, in .*/cluster\.yaml$'):
        read(one, {**one, "value": 6})


def test_a_missing_file_is_one_clear_error(tmp_path):
    with pytest.raises(ClusterFileError, match=r"nope\.yaml: cannot be read: No such file or directory"):
        read_cluster([str(tmp_path / "nope.yaml")])
    with pytest.raises(ClusterFileError, match=r"holds no file \*\.yaml, .*, with or without \.gz"):
        read_cluster([str(tmp_path)])
    with pytest.raises(ClusterFileError, match="cannot be read"):
        read_cluster(["a\0b"])


@pytest.mark.parametrize(
    ("pod", "message"),
    [
        (named("bad", containers=[{"resources": {"requests": {"cpu": "1x"}}}]), "spec.containers[0]"),
        (named("bad", containers=[{"name": 5}]), "spec.containers[0].name: Invalid value: integer: must be a string"),
        (named("bad", priority="high"), "spec.priority: Invalid value: string: must be an integer"),
        (named("bad", priorityClassName="unknown"), "spec.priorityClassName: no PriorityClass with name 'unknown'"),
        ({**POD, "metadata": {"name": "bad", "creationTimestamp": "soon"}}, "metadata.creationTimestamp: 'soon'"),
    ],
)
def test_a_pod_that_is_wrong_is_named_and_the_others_go_on(read, pod, message):
    cluster = read(pod, POD)
    assert [p.key for p in cluster.pods] == ["default/p1"]
    (skipped,) = cluster.skipped
    assert (skipped.namespace, skipped.name) == ("default", "bad")
    assert message in skipped.message


def test_a_pod_without_a_usable_name_is_skipped(read):
    cluster = read({**POD, "metadata": {"name": "\x1b[31m"}}, {**POD, "metadata": {}}, {**POD, "metadata": []})
    assert sorted(s.name for s in cluster.skipped) == ["", "", r"\x1b[31m"]


def test_of_two_pods_with_one_name_or_uid_the_first_counts(read):
    other = {**POD, "metadata": {"name": "p2", "uid": "u"}}
    same_uid = {**POD, "metadata": {"name": "p3", "uid": "u"}}
    cluster = read(POD, POD, other, same_uid)
    assert [p.key for p in cluster.pods] == ["default/p1", "default/p2"]
    assert [s.message.split(":")[0] for s in cluster.skipped] == ["metadata.name", "metadata.uid"]


def test_priority_classes_count_wherever_they_stand(read):
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 7}
    (pod,) = read(named("p", priorityClassName="high"), high).pods
    assert pod.priority == 7


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60)
@given(
    kind=st.sampled_from(["Pod", "Node", "PriorityClass", "List", "Service", "PersistentVolume", "Namespace"]),
    parts=st.fixed_dictionaries(
        {}, optional={"metadata": json_values, "spec": json_values, "status": json_values, "items": json_values}
    ),
)
def test_no_object_makes_reading_fail_in_any_other_way(tmp_path_factory, kind, parts):
    path = tmp_path_factory.mktemp("fuzz") / "c.json"
    path.write_bytes(msgspec.json.encode({"kind": kind, "apiVersion": "v1", **parts}))
    with contextlib.suppress(ClusterFileError):
        read_cluster([str(path)])
