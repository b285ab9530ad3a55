"""H34 to H60: selectors, affinities, spread constraints, tolerations, ports and gates that mean nothing or too much."""

from e2e.controlplane.client import Object
from e2e.controlplane.objects import container
from e2e.hostile.pods import affinity, expression, near, one, pods_with, ports
from e2e.hostile.row import BOUND, FAILS, GATED, Case, Request, Row, create_pod, refused

AFFINITY, POD_AFFINITY = "node affinity/selector", "didn't match pod affinity rules"
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
NEAR, FAR = "podAffinity", "podAntiAffinity"
_GOOD = expression("pool", "In", "plain")
_OWN: Object = {"labelSelector": {"matchLabels": {"app": "self"}}}


def _preferred(*preferences: Object, weight: int = 1) -> Object:
    weighted = [{"weight": weight, "preference": each} for each in preferences]
    return {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}}


def _no_terms(*terms: Object) -> tuple[Request, ...]:
    return refused(*(affinity("", each).spec for each in terms))


def _no_pod_terms(kind: str, *terms: Object) -> tuple[Request, ...]:
    return refused(*(near("", kind, each).spec for each in terms))


def _spread(key: str = ZONE, skew: int = 1, *, hard: bool = True, **more: object) -> Object:
    unsatisfiable = "DoNotSchedule" if hard else "ScheduleAnyway"
    return {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": unsatisfiable, **more}


def _spreads(*constraints: Object) -> Object:
    return {"topologySpreadConstraints": list(constraints)}


def _no_spreads(*specs: Object, status: int = 422) -> tuple[Request, ...]:
    return refused(*specs, status=status)


def _no_tolerations(*tolerations: Object) -> tuple[Request, ...]:
    return refused(*({"tolerations": [each]} for each in tolerations))


def _no_ports(*host_ports: Object) -> tuple[Request, ...]:
    return refused(ports(*host_ports).spec)


def _gates(*names: str) -> Object:
    return {"schedulingGates": [{"name": each} for each in names]}


PLACEMENT_RULES: tuple[Row, ...] = (
    Row(
        34,
        "nodeSelector with a bad key or value; with null for a value",
        {"selector-null": Case(AFFINITY, {"nodeSelector": {"pool": None}})},
        refused({"nodeSelector": {"a b": "c"}}, {"nodeSelector": {"a": "b c"}}),
    ),
    Row(
        35,
        "required node affinity `Gt abc`, `Gt` 2^63",
        {
            "required-gt-text": affinity(AFFINITY, expression("pool", "Gt", "abc")),
            "required-gt-beyond-64-bits": affinity(AFFINITY, expression("size", "Gt", str(2**63))),
        },
    ),
    Row(
        36,
        "preferred node affinity `Gt abc`",
        {
            "preferred-gt-text": Case(
                BOUND,
                _preferred(expression("size", "Gt", "abc"), weight=100),
                kube_scheduler=FAILS,
            )
        },
    ),
    Row(
        37,
        "`Gt` of two values, `In` of none, `Exists` with one, an operator that is none",
        requests=_no_terms(
            expression("a", "Gt", "1", "2"),
            expression("a", "In"),
            expression("a", "Exists", "b"),
            expression("a", "Is", "b"),
        ),
    ),
    Row(
        38,
        "`In` and `NotIn` of `b c`",
        requests=_no_terms(expression("a", "In", "b c"), expression("a", "NotIn", "b c")),
        note="decided all the same",
        shown_by=("tests/hostile/test_pods.py::test_any_text_may_stand_anywhere",),
    ),
    Row(
        39,
        "no node selector terms; an empty one, alone, or beside a good one; a bad one beside a good one",
        {
            "empty-term": affinity(AFFINITY, {}),
            "empty-or-good-term": affinity(BOUND, {}, _GOOD),
            "bad-or-good-term": affinity(BOUND, expression("pool", "Gt", "abc"), _GOOD),
        },
        refused(affinity("").spec),
    ),
    Row(
        40,
        "matchFields of two values, or of another field than the name",
        requests=_no_terms(
            {"matchFields": [one("metadata.name", "In", "a", "b")]},
            {"matchFields": [one("metadata.namespace", "In", "a")]},
        ),
    ),
    Row(
        41,
        "preferred node affinity of weight 0, 101, -1",
        requests=refused(*(_preferred(_GOOD, weight=each) for each in (0, 101, -1))),
    ),
    Row(42, "a preferred node affinity that is empty", {"empty-preference": Case(BOUND, _preferred({}))}),
    Row(
        43,
        "pod affinity over no topologyKey, or a bad one",
        requests=_no_pod_terms(NEAR, {**_OWN, "topologyKey": ""}, {**_OWN, "topologyKey": "a b"}),
    ),
    Row(44, "pod affinity without a selector", {"near-nobody": near(POD_AFFINITY, NEAR, {"topologyKey": HOSTNAME})}),
    Row(
        45,
        "pod affinity to all pods; to itself alone",
        {
            "near-anybody": near(BOUND, NEAR, pods_with(HOSTNAME)),
            "near-itself": Case(BOUND, near(BOUND, NEAR, {**_OWN, "topologyKey": ZONE}).spec, labels={"app": "self"}),
        },
    ),
    Row(
        46,
        "pod affinity to itself over a key that no node has",
        {
            "own-affinity-on-a-key-no-node-has": Case(
                POD_AFFINITY, near("", NEAR, {**_OWN, "topologyKey": "no/such"}).spec, labels={"app": "self"}
            )
        },
    ),
    Row(
        47,
        "pod anti-affinity to itself",
        {
            "far-from-itself": Case(
                BOUND, near(BOUND, FAR, pods_with(HOSTNAME, one("app", "In", "apart"))).spec, labels={"app": "apart"}
            )
        },
    ),
    Row(
        48,
        "a selector with operator `Regex` and `(a+)+$`",
        requests=_no_pod_terms(NEAR, pods_with(HOSTNAME, one("app", "Regex", "(a+)+$"))),
        note="never run as an expression",
        shown_by=("tests/hostile/test_clusters.py::test_preemption_gets_along_with_any_budget",),
    ),
    Row(
        49,
        "pod affinity to namespace `../kube-system`; matchLabelKeys without a selector, or of its own keys",
        requests=_no_pod_terms(
            NEAR,
            pods_with(HOSTNAME, namespaces=["../kube-system"]),
            {"topologyKey": HOSTNAME, "matchLabelKeys": ["app"]},
            pods_with(HOSTNAME, matchLabelKeys=["app"], mismatchLabelKeys=["app"]),
        ),
    ),
    Row(
        50,
        "maxSkew 0, -1; 2^31-1; 2^31",
        {"largest-skew": Case(BOUND, _spreads(_spread(skew=2**31 - 1, labelSelector={})))},
        (
            *_no_spreads(_spreads(_spread(skew=0)), _spreads(_spread(skew=-1))),
            *_no_spreads(_spreads(_spread(skew=2**31)), status=400),
        ),
    ),
    Row(
        51,
        "minDomains 0, or where spreading is only a wish; 5 where there are two zones",
        {
            "five-of-two-zones": Case(
                BOUND,
                _spreads(_spread(minDomains=5, labelSelector={"matchLabels": {"app": "zoned"}})),
                labels={"app": "zoned"},
            )
        },
        _no_spreads(_spreads(_spread(minDomains=0)), _spreads(_spread(hard=False, minDomains=5))),
    ),
    Row(
        52,
        "a spread constraint without a selector; over a key that no node has; twice the same",
        {
            "spread-over-nobody": Case(BOUND, _spreads(_spread())),
            "spread-over-no-node": Case("topology spread constraint", _spreads(_spread("no/such"))),
        },
        _no_spreads(_spreads(_spread(), _spread())),
    ),
    Row(
        53,
        "tolerations: no operator, `Exists` with a value, no key, a bad key, value `<script>`, no effect",
        requests=_no_tolerations(
            {"key": "a", "operator": "Is"},
            {"key": "a", "operator": "Exists", "value": "b"},
            {"operator": "Equal", "value": "b"},
            {"key": "a b", "operator": "Exists"},
            {"key": "a", "value": "<script>"},
            {"key": "a", "operator": "Exists", "effect": "Never"},
        ),
    ),
    Row(
        54,
        "a toleration of everything",
        {"tolerates-everything": Case(BOUND, {"tolerations": [{"operator": "Exists"}]})},
    ),
    Row(
        55,
        "tolerationSeconds with NoSchedule; of -2^63",
        {
            "toleration-seconds-min": Case(
                BOUND,
                {
                    "tolerations": [
                        {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": -(2**63)}
                    ]
                },
            )
        },
        _no_tolerations({"key": "a", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 1}),
    ),
    Row(
        56,
        "a toleration `Gt`, which a feature gate allows",
        requests=_no_tolerations({"key": "a", "operator": "Gt", "value": "5"}),
    ),
    Row(
        57,
        "hostPort -1, 65536; 0, 65535",
        {"host-port-zero": ports({"hostPort": 0}), "host-port-max": ports({"hostPort": 65535})},
        (*_no_ports({"hostPort": -1}), *_no_ports({"hostPort": 65536})),
    ),
    Row(
        58,
        "hostIP `abc`, `01.2.3.4`, `::ffff:1.2.3.4`",
        {
            "host-ip-text": ports({"hostPort": 1000, "hostIP": "abc"}),
            "host-ip-leading-zero": ports({"hostPort": 1001, "hostIP": "01.2.3.4"}),
            "host-ip-mapped": ports({"hostPort": 1002, "hostIP": "::ffff:1.2.3.4"}),
        },
    ),
    Row(
        59,
        "one hostPort twice in a container; protocol QUIC",
        requests=(
            *refused({"containers": [container({}, ports=[{"containerPort": 80, "hostPort": 80}] * 2)]}),
            *_no_ports({"hostPort": 80, "protocol": "QUIC"}),
        ),
    ),
    Row(
        60,
        "gates with a bad name, twice the same, on a pod with a node; one, a thousand",
        {
            "gated": Case(GATED, _gates("example.com/gate")),
            "1000-gates": Case(GATED, _gates(*(f"example.com/g{index}" for index in range(1000)))),
        },
        (
            *refused(_gates("a b"), _gates("example.com/a", "example.com/a")),
            create_pod(422, nodeName="n0", **_gates("example.com/a")),
        ),
    ),
)
