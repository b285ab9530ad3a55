"""H86 to H89: thousands of everything; the largest are what the API server takes at most in a pod."""

from e2e.controlplane.client import Object
from e2e.hostile.amounts import CPU
from e2e.hostile.placement_rules import AFFINITY, FAR, HOSTNAME, NEAR, POD_AFFINITY
from e2e.hostile.pods import affinity, claims, expression, near, one, pods_with, ports, several, volumes, wishes
from e2e.hostile.row import BOUND, Case, Row

LARGEST = "largest-"
"""How the names of pods begin that take about a megabyte, or a second of somebody's time."""

_SPREAD = "topology spread constraint"


def _terms(count: int) -> Case:
    return affinity(AFFINITY, *(expression("pool", "In", f"no-{index}") for index in range(count)))


def _values(count: int) -> Case:
    return affinity(BOUND, expression("pool", "In", "plain", *(f"v{index}" for index in range(count))))


def _tolerations(count: int) -> Case:
    return Case(BOUND, {"tolerations": [{"key": f"k{index}", "operator": "Exists"} for index in range(count)]})


def _about_apps(count: int) -> tuple[Object, ...]:
    return tuple(pods_with(HOSTNAME, one("app", "In", f"app-{index}")) for index in range(count))


def _containers_of_resources(containers: int, resources: int) -> Case:
    amounts = {f"example.com/r{index}": "1" for index in range(resources)}
    return several("Insufficient example.com/r0", containers, **amounts)


def _host_ports(count: int) -> Case:
    return ports(*({"hostPort": 2000 + index, "containerPort": 1 + index} for index in range(count)))


def _spreads(count: int, *, hard: bool) -> Case:
    action = "DoNotSchedule" if hard else "ScheduleAnyway"
    each = [
        {"maxSkew": 2**31 - 1 if hard else 1, "topologyKey": f"key-{index}", "whenUnsatisfiable": action}
        for index in range(count)
    ]
    return Case(_SPREAD if hard else BOUND, {"topologySpreadConstraints": each})


def _missing_claims(count: int) -> Case:
    return claims('persistentvolumeclaim "claim-0" not found', *(f"claim-{index}" for index in range(count)))


def _labels(count: int) -> Case:
    return Case(BOUND, labels={f"label-{index}": "x" for index in range(count)})


VERY_MUCH: tuple[Row, ...] = (
    Row(
        86,
        "2,000 and 10,000 node selector terms; 3,000 that compare numbers; 3,000 preferred ones",
        {
            "2000-terms": _terms(2000),
            f"{LARGEST}10000-terms": _terms(10_000),
            "3000-numbers": affinity(AFFINITY, *(expression("pool", "Gt", str(index)) for index in range(3000))),
            "3000-preferred-node-terms": Case(
                BOUND,
                {
                    "affinity": {
                        "nodeAffinity": {
                            "preferredDuringSchedulingIgnoredDuringExecution": [
                                {"weight": 100, "preference": expression(f"key-{index}", "NotIn", "x")}
                                for index in range(3000)
                            ]
                        }
                    }
                },
            ),
        },
    ),
    Row(
        87,
        "20,000 and 60,000 values of one `In`; 5,000 keys in one term; the same in a selector of pods",
        {
            "20000-values": _values(20_000),
            f"{LARGEST}60000-values": _values(60_000),
            "5000-keys-in-one-term": affinity(
                BOUND, {"matchExpressions": [one(f"key-{index}", "DoesNotExist") for index in range(5000)]}
            ),
            "20000-values-in-one-selector": near(
                BOUND, FAR, pods_with(HOSTNAME, one("app", "In", *(f"v{index}" for index in range(20000))))
            ),
            "5000-keys-in-one-selector": near(
                BOUND, FAR, pods_with(HOSTNAME, *(one(f"key-{index}", "Exists") for index in range(5000)))
            ),
        },
    ),
    Row(
        88,
        "20,000 tolerations; thousands of pod affinity terms, required and preferred; thousands of namespaces",
        {
            "5000-tolerations": _tolerations(5000),
            f"{LARGEST}20000-tolerations": _tolerations(20_000),
            "2000-required-affinity-terms": near(POD_AFFINITY, NEAR, *_about_apps(2000)),
            "3000-anti-affinity-terms": near(BOUND, FAR, *_about_apps(3000)),
            f"{LARGEST}5000-anti-affinity-terms": near(BOUND, FAR, *_about_apps(5000)),
            "3000-anti-affinity-keys": near(
                BOUND, FAR, *(pods_with(f"key-{index}", one("app", "In", "x")) for index in range(3000))
            ),
            "3000-preferred-anti-affinity-terms": wishes(FAR, *_about_apps(3000)),
            f"{LARGEST}5000-preferred-affinity-terms": wishes(NEAR, *_about_apps(5000)),
            "1000-preferred-affinity-terms": wishes(NEAR, *({"topologyKey": f"key-{index}"} for index in range(1000))),
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
        },
    ),
    Row(
        89,
        "2,000 containers of 10 resources; 10,000 hostPorts; 3,000 spread constraints; 2,000 claims; 5,000 labels",
        {
            "500-containers": several(CPU, 500, cpu="10m", memory="1Mi"),
            f"{LARGEST}2000-containers": _containers_of_resources(2000, 10),
            "2000-host-ports": _host_ports(2000),
            f"{LARGEST}10000-host-ports": _host_ports(10_000),
            "500-spread-constraints": _spreads(500, hard=True),
            f"{LARGEST}3000-spread-constraints": _spreads(3000, hard=True),
            "500-soft-spread-constraints": _spreads(500, hard=False),
            "1000-missing-claims": _missing_claims(1000),
            f"{LARGEST}2000-missing-claims": _missing_claims(2000),
            "1000-labels": _labels(1000),
            f"{LARGEST}5000-labels": _labels(5000),
            "1000-disks": volumes(
                BOUND,
                *(
                    {"iscsi": {"targetPortal": "10.0.0.1:3260", "iqn": f"iqn.2001-04.com.example:disk-{n}", "lun": 0}}
                    for n in range(1000)
                ),
            ),
        },
    ),
)
