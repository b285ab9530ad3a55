"""Every odd pod by its name: amounts, selectors, ports, texts, very much of everything, odd volumes and odd nodes."""

from e2e.controlplane.objects import container
from e2e.scenarios.odd_pods import (
    BOUND,
    MAX,
    Case,
    affinity,
    claims,
    expression,
    near,
    on_node,
    one,
    pods_with,
    ports,
    requests,
    several,
    volumes,
    wishes,
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
