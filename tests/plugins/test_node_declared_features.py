from itertools import product

import msgspec
import pytest
from tests.builders import make_container, make_node, make_pod
from tests.plugins.scenes import Scene, hint

from bayplan.api.objects import ContainerRestartRule
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.cluster_event import (
    NODE_ADD,
    NODE_DECLARED_FEATURE,
    TARGET_POD_LABEL,
    TARGET_POD_UPDATE,
)
from bayplan.framework.status import Code
from bayplan.plugins.node_declared_features import NodeDeclaredFeatures

RESTART = "RestartAllContainersOnContainerExits"
NAMESPACES = "UserNamespacesHostNetworkSupport"
BIND_OPTIONS = "VolumeBindMountOptions"
PLUGIN = NodeDeclaredFeatures()


def declaring(name, *features):
    node = make_node(name)
    return msgspec.structs.replace(
        node, status=msgspec.structs.replace(node.status, declared_features=list(features) or None)
    )


def needing(*, host_network=False, host_users=None, action=None, init=False, uid="p"):
    rules = None if action is None else [ContainerRestartRule(action)]
    container = msgspec.structs.replace(make_container(), restart_policy_rules=rules)
    pod = make_pod(uid=uid, **({"init_containers": [container]} if init else {"containers": [container]}))
    return msgspec.structs.replace(
        pod, spec=msgspec.structs.replace(pod.spec, host_network=host_network, host_users=host_users)
    )


NODES = [
    declaring("none"),
    declaring("restart", "Other", RESTART),
    declaring("namespaces", NAMESPACES),
    declaring("both", RESTART, NAMESPACES),
]


def rejected(pod):
    return set(Scene(*NODES).rejections(PLUGIN, pod))


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (needing(), set()),
        (needing(action="RestartAllContainers"), {"none", "namespaces"}),
        (needing(action="RestartAllContainers", init=True), {"none", "namespaces"}),
        (needing(host_network=True, host_users=False), {"none", "restart"}),
        (
            needing(host_network=True, host_users=False, action="RestartAllContainers"),
            {"none", "restart", "namespaces"},
        ),
    ],
)
def test_a_node_must_declare_everything_the_pod_needs(pod, expected):
    assert rejected(pod) == expected


@pytest.mark.parametrize(
    "pod",
    [
        needing(action="Restart"),
        needing(host_network=True),
        needing(host_network=True, host_users=True),
        needing(host_users=False),
    ],
)
def test_other_pods_need_nothing_and_skip_the_filter(pod):
    scene = Scene(*NODES)
    assert PLUGIN.pre_filter({}, PodInfo(pod), scene.cache.nodes).status.code is Code.SKIP


@pytest.mark.parametrize("kind", ["containers", "initContainers", "ephemeralContainers"])
def test_options_of_a_bind_mount_need_a_node_that_declares_them(kind):
    mounts = [{"name": "a", "mountPath": "/a"}, {"name": "b", "mountPath": "/b", "bindMountOptions": ["noexec"]}]
    spec = {"containers": [{"name": "c"}], kind: [{"name": "c"}, {"name": "d", "volumeMounts": mounts}]}
    pod = msgspec.convert({"spec": spec}, type(make_pod()))
    scene = Scene(declaring("without", RESTART, NAMESPACES), declaring("with", BIND_OPTIONS))
    assert set(scene.rejections(PLUGIN, pod)) == {"without"}


@pytest.mark.parametrize("mount", [{}, {"bindMountOptions": []}])
def test_a_mount_without_options_needs_nothing(mount):
    wire = {"spec": {"containers": [{"name": "c", "volumeMounts": [{"name": "a", "mountPath": "/a", **mount}]}]}}
    pod = msgspec.convert(wire, type(make_pod()))
    assert PLUGIN.sign_pod(PodInfo(pod)) == frozenset()


def test_the_rejection_has_kube_schedulers_words_and_preemption_cannot_help():
    found = Scene(NODES[0]).rejections(PLUGIN, needing(action="RestartAllContainers"))
    assert found == {"none": (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ["node(s) didn't match Pod's required features"])}


def test_pods_share_a_shape_when_they_need_the_same():
    pods = [needing(host_network=n, host_users=u) for n, u in product([False, True], [None, True, False])]
    assert len({PLUGIN.sign_pod(PodInfo(pod)) for pod in pods}) == 2


def test_a_node_wakes_the_pod_when_it_is_new_or_declares_something_else():
    pod = needing(action="RestartAllContainers")
    assert hint(PLUGIN, NODE_ADD, pod, None, NODES[0]) == "Queue"
    assert hint(PLUGIN, NODE_DECLARED_FEATURE, pod, NODES[0], NODES[1]) == "Queue"
    assert hint(PLUGIN, NODE_DECLARED_FEATURE, pod, NODES[1], NODES[1]) == "QueueSkip"


def test_only_a_change_of_what_the_pod_itself_needs_wakes_it():
    pod, plain = needing(action="RestartAllContainers"), needing()
    assert hint(PLUGIN, TARGET_POD_UPDATE, pod, pod, plain) == "Queue"
    assert hint(PLUGIN, TARGET_POD_LABEL, pod, pod, pod) == "QueueSkip"


def test_the_fields_are_read_from_the_wire():
    wire = (
        b'{"spec":{"hostNetwork":true,"hostUsers":false,"containers":'
        b'[{"restartPolicyRules":[{"action":"RestartAllContainers","exitCodes":{"operator":"In","values":[1]}}]}]}}'
    )
    pod = msgspec.json.decode(wire, type=type(make_pod()))
    assert PLUGIN.sign_pod(PodInfo(pod)) == {RESTART, NAMESPACES}
    node = msgspec.json.decode(b'{"status":{"declaredFeatures":["A"]}}', type=type(make_node()))
    assert node.status.declared_features == ["A"]
