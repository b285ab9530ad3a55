"""Objects the API server accepts and a scheduler should not trust: the right verdict, and no harm to other pods."""

import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from e2e.controlplane.bayplan_process import BayplanProcess
from e2e.controlplane.client import ApiClient, Object, Objects
from e2e.controlplane.objects import node, pod
from e2e.controlplane.plane import ControlPlane
from e2e.scenarios.outcomes import (
    assert_alive_without_a_traceback,
    condition_of,
    configuration,
    node_of,
    wait_bound,
    wait_refused,
)

pytestmark = pytest.mark.controlplane

BOUND = ""
ORDINARY = 30
MAX = 2**63 - 1
LABELS = {"pool": "plain", "size": "5"}
TAINT = {"key": "example.com/odd", "effect": "NoSchedule"}
ODD_NODES: dict[str, Object] = {
    "huge-1": {"cpu": "1e100", "memory": "1e100", "pods": "1e10"},
    "huge-2": {"cpu": "1e1000000", "memory": str(MAX), "pods": "110", "example.com/gpu": str(MAX)},
    "zero": {"cpu": "0", "memory": "0", "pods": "110"},
    "podless": {"cpu": "4", "memory": "8Gi", "pods": "0"},
    "bare": {},
}


@dataclass(frozen=True)
class Case:
    """A pod and what must become of it: `verdict` is part of the message, or empty for a pod that is bound."""

    verdict: str
    spec: Object = field(default_factory=dict)
    annotations: Object = field(default_factory=dict)
    labels: Object = field(default_factory=dict)


def requests(verdict: str = BOUND, **amounts: object) -> Case:
    """A container with these requests, as they are: numbers and null stay so. `cpu` and the like by name."""
    return Case(verdict, {"containers": [container(amounts)]})


def container(amounts: Object, name: str = "main", **more: object) -> Object:
    limits = {key: amount for key, amount in amounts.items() if "/" in key}
    resources = {"requests": amounts, **({"limits": limits} if limits else {})}
    return {"name": name, "image": "pause", "resources": resources, **more}


def several(verdict: str, count: int, **amounts: object) -> Case:
    return Case(verdict, {"containers": [container(amounts, f"c{index}") for index in range(count)]})


def affinity(verdict: str, *terms: Object) -> Case:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return Case(verdict, {"affinity": {"nodeAffinity": required}})


def expression(key: str, operator: str, *values: str) -> Object:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def near(verdict: str, kind: str, *terms: Object) -> Case:
    return Case(verdict, {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}})


def wishes(kind: str, *terms: Object) -> Case:
    weighted = [{"weight": 100, "podAffinityTerm": term} for term in terms]
    return Case(BOUND, {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}})


def pods_with(key: str, *expressions: Object, **more: object) -> Object:
    """A pod affinity term by these expressions."""
    return {"topologyKey": key, "labelSelector": {"matchExpressions": list(expressions)}, **more}


def one(key: str, operator: str, *values: str) -> Object:
    return {"key": key, "operator": operator, "values": list(values)}


def volumes(verdict: str, *sources: Object) -> Case:
    return Case(verdict, {"volumes": [{"name": f"v{index}", **source} for index, source in enumerate(sources)]})


def claims(verdict: str, *names: str) -> Case:
    return volumes(verdict, *({"persistentVolumeClaim": {"claimName": name}} for name in names))


def ports(*host_ports: Object) -> Case:
    return Case(BOUND, {"containers": [container({}, ports=[{"containerPort": 80, **one} for one in host_ports])]})


def on_node(verdict: str, name: str, amounts: Object | None = None) -> Case:
    """A pod that tolerates everything and wants one of the odd nodes."""
    return Case(
        verdict,
        {
            "containers": [container(amounts or {"cpu": "1", "memory": "1Gi"})],
            "nodeSelector": {"kubernetes.io/hostname": name},
            "tolerations": [{"operator": "Exists"}],
        },
    )


CPU, MEMORY, AFFINITY = "Insufficient cpu", "Insufficient memory", "node affinity/selector"
HOSTNAME = "kubernetes.io/hostname"
NEAR, FAR = "podAffinity", "podAntiAffinity"
GOOD = expression("pool", "In", "plain")

CASES: dict[str, Case] = {
    # Amounts no node has, beyond what 64 bits hold.
    "cpu-1e100": requests(CPU, cpu="1e100"),
    "cpu-1e100-number": requests(CPU, cpu=1e100),
    "cpu-1-exa": requests(CPU, cpu="1E"),
    "cpu-2-to-63": requests(CPU, cpu=str(2**63)),
    "cpu-max": requests(CPU, cpu=str(MAX)),
    "cpu-8-exbi": requests(CPU, cpu="8Ei"),
    "cpu-16-exbi": requests(CPU, cpu="16Ei"),
    "cpu-1e1000000": requests(CPU, cpu="1e1000000"),
    "memory-1e100": requests(MEMORY, memory="1e100"),
    "memory-16-exbi": requests(MEMORY, memory="16Ei"),
    "memory-max": requests(MEMORY, memory=str(MAX)),
    "memory-sum-wraps": several(MEMORY, 2, memory=str(MAX)),
    "cpu-sum-wraps": several(CPU, 2, cpu="9223372036854775"),
    "cpu-max-milli": requests(CPU, cpu=f"{MAX}m"),
    "cpu-max-when-scaled": requests(CPU, cpu="9223372036854775"),
    "cpu-1-kibi": requests(CPU, cpu="1Ki"),
    # Amounts near nothing, and every way to write a number.
    "cpu-tenth-of-nano": requests(cpu="0.1n"),
    "cpu-nano": requests(cpu="1n"),
    "cpu-1e-10": requests(cpu="1e-10"),
    "memory-milli": requests(memory="1m"),
    "memory-tenth-of-nano": requests(memory="0.1n"),
    "cpu-without-leading-digit": requests(cpu=".5"),
    "cpu-trailing-point": requests(cpu="1."),
    "cpu-plus": requests(cpu="+1"),
    "cpu-leading-space": requests(cpu=" 1"),
    "cpu-trailing-space": requests(cpu="1 "),
    "cpu-integer": requests(cpu=1),
    "cpu-float": requests(cpu=1.5),
    "cpu-null": requests(cpu=None),
    "memory-in-milli": requests(memory="128974848000m"),
    "memory-decimal": requests(memory="100M"),
    "extended-zero": requests(**{"example.com/none": "0"}),
    "extended-absent": requests("Insufficient example.com/none", **{"example.com/none": "1"}),
    "extended-native": requests("Insufficient kubernetes.io/foo", **{"kubernetes.io/foo": "1"}),
    "sidecar-too-big": Case(
        CPU,
        {
            "containers": [container({"cpu": "500m"})],
            "initContainers": [container({"cpu": "4"}, "side", restartPolicy="Always")],
        },
    ),
    # Selectors that mean nothing.
    "selector-null": Case(AFFINITY, {"nodeSelector": {"pool": None}}),
    "required-gt-text": affinity(AFFINITY, expression("pool", "Gt", "abc")),
    "required-gt-beyond-64-bits": affinity(AFFINITY, expression("size", "Gt", str(2**63))),
    "preferred-gt-text": Case(
        BOUND,
        {
            "affinity": {
                "nodeAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 100, "preference": expression("size", "Gt", "abc")},
                        {"weight": 1, "preference": {}},
                    ]
                }
            }
        },
    ),
    "empty-term": affinity(AFFINITY, {}),
    "empty-or-good-term": affinity(BOUND, {}, GOOD),
    "bad-or-good-term": affinity(BOUND, expression("pool", "Gt", "abc"), GOOD),
    "own-affinity-on-a-key-no-node-has": Case(
        "didn't match pod affinity rules",
        {
            "affinity": {
                "podAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {"topologyKey": "no/such", "labelSelector": {"matchLabels": {"app": "self"}}}
                    ]
                }
            }
        },
        labels={"app": "self"},
    ),
    "missing-claim-with-a-path-in-its-name": Case(
        'persistentvolumeclaim "../../etc/passwd" not found',
        {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "../../etc/passwd"}}]},
    ),
    # Ports, tolerations, text.
    "tolerates-everything": Case(BOUND, {"tolerations": [{"operator": "Exists"}]}),
    "toleration-seconds-min": Case(
        BOUND,
        {"tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": -(2**63)}]},
    ),
    "host-port-zero": ports({"hostPort": 0}),
    "host-port-max": ports({"hostPort": 65535}),
    "host-ip-text": ports({"hostPort": 1000, "hostIP": "abc"}),
    "host-ip-leading-zero": ports({"hostPort": 1001, "hostIP": "01.2.3.4"}),
    "host-ip-mapped": ports({"hostPort": 1002, "hostIP": "::ffff:1.2.3.4"}),
    "annotations": Case(
        BOUND,
        annotations={
            "html": "<img src=x onerror=alert(1)>",
            "control": "\0\x1b[2J\n",
            "bidi": "\u202egnirts",
            "surrogate": "\ud800",
            "kopf.zalando.org/last-handled-configuration": "{broken",
        },
    ),
    "image-html": Case(BOUND, {"containers": [{**container({}), "image": "<script>"}]}),
    "image-newline": Case(BOUND, {"containers": [{**container({}), "image": "a\nb"}]}),
    "image-long": Case(BOUND, {"containers": [{**container({}), "image": "x" * 1000}]}),
    "n" * 253: Case(BOUND),
    # Much of everything.
    "2000-terms": affinity(AFFINITY, *(expression("pool", "In", f"no-{index}") for index in range(2000))),
    "20000-values": affinity(BOUND, expression("pool", "In", "plain", *(f"v{index}" for index in range(20000)))),
    "5000-tolerations": Case(
        BOUND, {"tolerations": [{"key": f"k{index}", "operator": "Exists"} for index in range(5000)]}
    ),
    "500-containers": several(CPU, 500, cpu="10m", memory="1Mi"),
    "2000-host-ports": ports(*({"hostPort": 2000 + index, "containerPort": 1 + index} for index in range(2000))),
    "1000-labels": Case(BOUND, labels={f"label-{index}": "x" for index in range(1000)}),
    "1000-gates": Case(
        "Scheduling is blocked", {"schedulingGates": [{"name": f"example.com/g{index}"} for index in range(1000)]}
    ),
    "500-spread-constraints": Case(
        "topology spread constraint",
        {
            "topologySpreadConstraints": [
                {"maxSkew": 2**31 - 1, "topologyKey": f"key-{index}", "whenUnsatisfiable": "DoNotSchedule"}
                for index in range(500)
            ]
        },
    ),
    "1000-preferred-affinity-terms": Case(
        BOUND,
        {
            "affinity": {
                "podAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 100, "podAffinityTerm": {"topologyKey": f"key-{index}"}} for index in range(1000)
                    ]
                }
            }
        },
    ),
    "3000-numbers": affinity(AFFINITY, *(expression("pool", "Gt", str(index)) for index in range(3000))),
    "5000-keys-in-one-term": affinity(
        BOUND, {"matchExpressions": [one(f"key-{index}", "DoesNotExist") for index in range(5000)]}
    ),
    "3000-preferred-node-terms": Case(
        BOUND,
        {
            "affinity": {
                "nodeAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 100, "preference": expression(f"key-{index}", "NotIn", "x")} for index in range(3000)
                    ]
                }
            }
        },
    ),
    "2000-required-affinity-terms": near(
        "didn't match pod affinity rules",
        NEAR,
        *(pods_with(HOSTNAME, one("app", "In", f"app-{index}")) for index in range(2000)),
    ),
    "3000-anti-affinity-terms": near(
        BOUND, FAR, *(pods_with(HOSTNAME, one("app", "In", f"app-{index}")) for index in range(3000))
    ),
    "3000-anti-affinity-keys": near(
        BOUND, FAR, *(pods_with(f"key-{index}", one("app", "In", "x")) for index in range(3000))
    ),
    "5000-keys-in-one-selector": near(
        BOUND, FAR, pods_with(HOSTNAME, *(one(f"key-{index}", "Exists") for index in range(5000)))
    ),
    "20000-values-in-one-selector": near(
        BOUND, FAR, pods_with(HOSTNAME, one("app", "In", *(f"v{index}" for index in range(20000))))
    ),
    "5000-namespaces": near(
        BOUND,
        FAR,
        pods_with(HOSTNAME, one("app", "Exists"), namespaces=[f"ns-{index}" for index in range(5000)]),
    ),
    "1000-namespace-selectors": near(
        BOUND,
        FAR,
        *(
            pods_with(HOSTNAME, one("app", "In", "x"), namespaceSelector={"matchLabels": {f"key-{index}": "x"}})
            for index in range(1000)
        ),
    ),
    "3000-preferred-anti-affinity-terms": wishes(
        FAR, *(pods_with(HOSTNAME, one("app", "In", f"app-{index}")) for index in range(3000))
    ),
    "500-soft-spread-constraints": Case(
        BOUND,
        {
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": f"key-{index}", "whenUnsatisfiable": "ScheduleAnyway"}
                for index in range(500)
            ]
        },
    ),
    "1000-missing-claims": claims(
        'persistentvolumeclaim "claim-0" not found', *(f"claim-{index}" for index in range(1000))
    ),
    "1000-disks": volumes(
        BOUND,
        *(
            {"iscsi": {"targetPortal": "10.0.0.1:3260", "iqn": f"iqn.2001-04.com.example:disk-{index}", "lun": 0}}
            for index in range(1000)
        ),
    ),
    # Claims and volumes that nobody can use.
    "claim-of-an-exabyte": claims("didn't find available persistent volumes to bind", "exabyte"),
    "claim-of-1e100": claims("didn't find available persistent volumes to bind", "most"),
    "claim-on-an-odd-volume": claims("didn't match PersistentVolume's node affinity", "odd"),
    # Nodes that promise everything, or nothing.
    "on-huge-1": on_node(BOUND, "huge-1"),
    "on-huge-2": on_node(BOUND, "huge-2"),
    "max-on-huge-1": on_node(CPU, "huge-1", {"cpu": "1e100"}),
    "max-on-huge-2": on_node(CPU, "huge-2", {"cpu": "1e1000000"}),
    "on-zero": on_node(CPU, "zero"),
    "on-podless": on_node("Too many pods", "podless"),
    "on-bare": on_node(CPU, "bare"),
    "on-either-huge-node": Case(
        BOUND,
        {"tolerations": [{"operator": "Exists"}], "nodeSelector": {"pool": "huge"}},
    ),
    "on-the-overfull-node": on_node(CPU, "overfull"),
}


def odd_node(name: str, amounts: Object) -> Object:
    document = node(name, labels={"pool": name.partition("-")[0]}, taints=[TAINT])
    document["status"] |= {"capacity": amounts, "allocatable": amounts}
    return document


def placed_elsewhere(namespace: str) -> Objects:
    """Pods somebody put on nodes without asking: one nobody knows, and one far too small."""
    placed: Objects = [
        pod("on-a-missing-node", namespace, scheduler="another", node_name="no-such-node"),
        pod("far-too-big", namespace, scheduler="another", node_name="overfull", requests={"cpu": "1e100"}),
        pod("too-big", namespace, scheduler="another", node_name="overfull", requests={"cpu": "100"}),
    ]
    return placed


def odd_storage(client: ApiClient, namespace: str) -> None:
    """Claims for more than there is, and volumes that no node can reach: `Gt` compares with a text."""
    client.create(
        "storageclasses",
        {
            "metadata": {"name": namespace},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        },
    )
    common: Object = {"accessModes": ["ReadWriteOnce"], "storageClassName": namespace}
    for name, amount in {"exabyte": "1Ei", "most": "1e100", "odd": "1m"}.items():
        spec: Object = {**common, "resources": {"requests": {"storage": amount}}}
        client.create("persistentvolumeclaims", {"metadata": {"name": name, "namespace": namespace}, "spec": spec})
    for name, capacity in {"small": "1n", "odd": "1e18"}.items():
        spec = {
            **common,
            "capacity": {"storage": capacity},
            "persistentVolumeReclaimPolicy": "Retain",
            "local": {"path": "/mnt/disk"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [expression("size", "Gt", "abc"), {}]}},
        }
        client.create("persistentvolumes", {"metadata": {"name": f"{namespace}-{name}"}, "spec": spec})
    change = {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}}
    bound: Object = {**change, "spec": {"volumeName": f"{namespace}-odd"}}
    client.patch("persistentvolumeclaims", "odd", bound, namespace=namespace)
    for name, selector in {
        "none": None,
        "all": {},
        "empty": {"matchExpressions": [one("app", "DoesNotExist")]},
    }.items():
        budget: Object = {"maxUnavailable": "100%", "selector": selector}
        client.create("poddisruptionbudgets", {"metadata": {"name": name, "namespace": namespace}, "spec": budget})


@dataclass(frozen=True)
class World:
    client: ApiClient
    namespace: str
    process: BayplanProcess


@pytest.fixture(scope="module")
def world(
    control_plane: ControlPlane, bayplan_identity: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """All the odd pods and nodes at once, among ordinary ones, given to one scheduler."""
    client, name = control_plane.client, f"hostile-{secrets.token_hex(4)}"
    client.create("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    client.create_all("nodes", [node(f"n{index}", pods="500", labels=LABELS) for index in range(20)])
    client.create_all("nodes", [odd_node(each, amounts) for each, amounts in ODD_NODES.items()])
    client.create("nodes", node("overfull", labels={"pool": "odd"}, taints=[TAINT]))
    client.create_all("pods", placed_elsewhere(name))
    odd_storage(client, name)
    directory = tmp_path_factory.mktemp("hostile")
    config = directory / "config.json"
    config.write_text(json.dumps(configuration()))
    process = BayplanProcess(directory, config=config, kubeconfig=bayplan_identity)
    try:
        process.wait_ready()
        for target in ("<script>alert(1)</script>", "../../x y", "no-such-node"):
            victim = f"bound-{secrets.token_hex(4)}"
            client.create("pods", pod(victim, name, scheduler="another"))
            client.bind(name, victim, target)
        documents = [document_of(name, each, case) for each, case in CASES.items()]
        ordinary = [pod(f"ordinary-{index}", name) for index in range(ORDINARY)]
        client.create_all("pods", [*documents[::2], *ordinary, *documents[1::2]])
        yield World(client, name, process)
    finally:
        process.stop(10)
        client.delete_all("nodes")
        client.delete_all("pods", name)
        for volume in client.list("persistentvolumes"):
            # No controller is there to let go of it.
            client.patch("persistentvolumes", volume["metadata"]["name"], {"metadata": {"finalizers": None}})
        client.delete_all("persistentvolumes")
        client.delete_all("storageclasses")


def document_of(namespace: str, name: str, case: Case) -> Object:
    document = pod(name, namespace, labels=case.labels, **{"requests": {"cpu": "10m"}, **case.spec})
    document["metadata"]["annotations"] = case.annotations
    return document


@pytest.mark.parametrize("name", CASES)
def test_an_odd_pod_gets_the_right_verdict(world: World, name: str) -> None:
    case = CASES[name]
    if case.verdict == BOUND:
        wait_bound(world.client, world.namespace, [name])
    elif "schedulingGates" in case.spec:
        assert case.verdict in condition_of(world.client.get("pods", name, world.namespace))["message"]
    else:
        condition = wait_refused(world.client, world.namespace, name)
        assert condition["reason"] == "Unschedulable"
        assert case.verdict in condition["message"]
        assert node_of(world.client, world.namespace, name) == ""


def test_all_ordinary_pods_among_them_are_bound(world: World) -> None:
    wait_bound(world.client, world.namespace, [f"ordinary-{index}" for index in range(ORDINARY)])


def test_an_ordinary_pod_is_still_bound_after_all_of_them_and_the_log_holds_no_exception(world: World) -> None:
    world.client.create("pods", pod("last", world.namespace))
    wait_bound(world.client, world.namespace, ["last"])
    assert_alive_without_a_traceback(world.process)
    assert "\x1b" not in world.process.log()


def test_a_node_that_turns_odd_is_left_and_taken_again_when_it_recovers(world: World) -> None:
    client = world.client
    amounts = {"cpu": "8", "memory": "8Gi", "pods": "10"}
    # A taint of its own, or the pods that wait for very much CPU would come while it has it.
    client.create("nodes", node("turning", cpu="8", labels={"pool": "turning"}, taints=[{**TAINT, "key": "turning"}]))

    def pod_for(name: str) -> Object:
        tolerations = [{"key": "turning", "operator": "Exists"}]
        spec: Object = {"nodeSelector": {"pool": "turning"}, "tolerations": tolerations}
        return pod(name, world.namespace, requests={"cpu": "1"}, **spec)

    client.create("pods", pod_for("turning-1"))
    wait_bound(client, world.namespace, ["turning-1"])
    for index, cpu in enumerate(["0", "1e100", "1n"]):
        odd = {**amounts, "cpu": cpu}
        client.patch("nodes", "turning", {"status": {"allocatable": odd, "capacity": odd}}, subresource="status")
        client.create("pods", pod_for(f"odd-{index}"))
        if cpu == "1e100":
            wait_bound(client, world.namespace, [f"odd-{index}"])
        else:
            assert CPU in wait_refused(client, world.namespace, f"odd-{index}")["message"]
    client.patch("nodes", "turning", {"status": {"allocatable": amounts, "capacity": amounts}}, subresource="status")
    wait_bound(client, world.namespace, ["odd-0", "odd-2"])
