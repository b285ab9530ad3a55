"""Pods nobody means well with: each is decided or refused by name, and the pods around it do not notice."""

import pytest
from tests.hostile.world import HOST, ZONE, claims, expression, near_pods, node_affinity, pod, requests, spread, term

MANY = 2000
PLACED = "-> "
CPU, AFFINITY, SPREAD = "Insufficient cpu", "node affinity/selector", "topology spread constraints"
NEAR, FAR = "podAffinity", "podAntiAffinity"
WORDS = ["", " ", "a b", "-", "é", "\u202e", "\0", "a" * 1000, "../..", "<script>", "{}", "'", "%s", "k/v/w"]
EVERYWHERE = [expression("app", "Exists")]
MISSING = [expression(f"k{i}", "DoesNotExist") for i in range(MANY)]
NEEDED = [expression(f"k{i}", "Exists") for i in range(MANY)]


def about_apps(key=HOST, **more):
    return [term(key, expression("app", "In", f"b{i}"), **more) for i in range(MANY)]


TERMS = {
    "required affinity": (near_pods(NEAR, about_apps()), "didn't match pod affinity rules"),
    "required anti-affinity": (near_pods(FAR, about_apps()), PLACED),
    "anti-affinity to all": (near_pods(FAR, [term(HOST, *EVERYWHERE)] * MANY), "pod anti-affinity rules"),
    "preferred affinity": (near_pods(NEAR, about_apps(), preferred=True), PLACED),
    "preferred anti-affinity": (near_pods(FAR, about_apps(ZONE), preferred=True), PLACED),
    "affinity on made-up keys": (near_pods(NEAR, [term(f"k{i}") for i in range(MANY)]), "pod affinity rules"),
    "anti-affinity on made-up keys": (near_pods(FAR, [term(f"k{i}") for i in range(MANY)]), PLACED),
    "a selector of many keys": (near_pods(FAR, [term(HOST, *MISSING)]), "pod anti-affinity rules"),
    "a selector that needs many keys": (near_pods(FAR, [term(HOST, *NEEDED)]), PLACED),
    "a selector of many values": (
        near_pods(FAR, [term(HOST, expression("app", "In", *map(str, range(20000))))]),
        PLACED,
    ),
    "many namespaces": (near_pods(FAR, [term(HOST, namespaces=[f"ns{i}" for i in range(20000)])]), PLACED),
    "many namespace selectors": (
        near_pods(FAR, [term(HOST, namespaceSelector={"matchLabels": {f"k{i}": "v"}}) for i in range(MANY)]),
        PLACED,
    ),
    "node affinity": (
        node_affinity([{"matchExpressions": [expression("pool", "In", f"v{i}")]} for i in range(MANY)]),
        AFFINITY,
    ),
    "node affinity by numbers": (
        node_affinity([{"matchExpressions": [expression(HOST, "Gt", str(i))]} for i in range(MANY)]),
        AFFINITY,
    ),
    "node affinity by names": (
        node_affinity([{"matchFields": [expression("metadata.name", "In", f"v{i}")]} for i in range(MANY)]),
        "0/4 nodes are available",
    ),
    "a node term of many keys": (node_affinity([{"matchExpressions": MISSING}]), PLACED),
    "preferred node affinity": (
        node_affinity([{"matchExpressions": [one]} for one in MISSING], preferred=True),
        PLACED,
    ),
    "a node selector": ({"nodeSelector": {f"k{i}": "v" for i in range(MANY)}}, AFFINITY),
    "hard spreads": ({"topologySpreadConstraints": [spread(f"k{i}") for i in range(MANY)]}, SPREAD),
    "soft spreads": (
        {"topologySpreadConstraints": [spread(f"k{i}", action="ScheduleAnyway") for i in range(MANY)]},
        PLACED,
    ),
    "a spread over a selector of many keys": ({"topologySpreadConstraints": [spread(ZONE, *MISSING)]}, PLACED),
    "a spread that honours many terms": (
        {
            **node_affinity([{"matchExpressions": [one]} for one in MISSING]),
            "topologySpreadConstraints": [spread(ZONE), spread(HOST), spread(ZONE, action="ScheduleAnyway")],
        },
        PLACED,
    ),
    "tolerations": ({"tolerations": [{"key": f"k{i}", "operator": "Exists"} for i in range(MANY)]}, PLACED),
    "containers": (
        {
            "containers": [
                {"name": f"c{i}", "image": f"i{i}", "resources": {"requests": {f"example.com/r{i % 9}": "1"}}}
                for i in range(MANY)
            ]
        },
        "Insufficient example.com/r0",
    ),
    "resources": (requests(**{f"example.com/r{i}": "1" for i in range(MANY)}), "Insufficient example.com/r0"),
    "host ports": ({"containers": [{"name": "c", "ports": [{"hostPort": i + 1} for i in range(MANY)]}]}, PLACED),
    "claims that are missing": (claims(*(f"c{i}" for i in range(MANY))), 'persistentvolumeclaim "c0" not found'),
    "ephemeral volumes": ({"volumes": [{"name": f"v{i}", "ephemeral": {}} for i in range(MANY)]}, "hostile-v0"),
    "disks": ({"volumes": [{"name": f"v{i}", "iscsi": {"iqn": f"q{i}"}} for i in range(MANY)]}, PLACED),
}


@pytest.mark.parametrize("rule", TERMS)
def test_thousands_of_rules_are_decided_and_harm_nobody(world, rule):
    spec, expected = TERMS[rule]
    assert expected in world.schedule(pod(**spec))
    world.assert_unharmed()
    world.place(pod("as-placed", **spec), "n1")
    world.assert_unharmed()


@pytest.mark.parametrize(
    ("amount", "expected"),
    [
        ("1e100", CPU),
        (1e100, CPU),
        ("1e1000000", CPU),
        ("1e-1000000", PLACED),
        ("9" * 20, CPU),
        ("9" * 100_000, CPU),
        ("8Ei", CPU),
        (10**40, CPU),
        ("0.1n", PLACED),
        ("1e-100", PLACED),
        ("0." + "0" * 100_000 + "1", PLACED),
        ("-1", PLACED),
        ("-1e100", PLACED),
        (-1, PLACED),
        (None, PLACED),
    ],
)
def test_absurd_amounts_are_too_much_or_next_to_nothing(world, amount, expected):
    assert expected in world.schedule(pod(**requests(cpu=amount)))
    world.place(pod("as-placed", **requests(cpu=amount)), "n3")
    world.assert_unharmed()


@pytest.mark.parametrize("amount", ["1Ei10", "", "x", "1e", "NaN", "Inf", "0x10", "1_000", "\u0661", "1" * 100 + "x"])
def test_an_amount_that_is_none_leaves_the_pod_out_and_names_its_field(world, amount, caplog):
    assert world.schedule(pod(**requests(cpu=amount))) is None
    assert world.metrics.left_out == ["Pod"]
    assert "default/hostile" in caplog.text
    assert "spec.containers[0].resources.requests[cpu]" in caplog.text
    assert len(caplog.text) < 1000
    world.place(pod("as-placed", **requests(cpu=amount)), "n3")
    world.assert_unharmed()


@pytest.mark.parametrize("word", WORDS)
def test_any_text_may_stand_anywhere(world, word):
    given = [
        pod("labels", labels={word: word}),
        pod("selector", nodeSelector={word: word}),
        pod(
            "terms", **node_affinity([{"matchExpressions": [expression(word, op, word)]} for op in ("In", "Gt", word)])
        ),
        pod("near", **near_pods(NEAR, [term(word, expression(word, "In", word), namespaces=[word])])),
        pod("far", **near_pods(FAR, [term(word, expression(word, word, word), matchLabelKeys=[word])])),
        pod("spread", topologySpreadConstraints=[spread(word, expression(word, "NotIn", word), skew=-1)]),
        pod("spread-words", topologySpreadConstraints=[spread(HOST, nodeTaintsPolicy=word, minDomains=-5)]),
        pod("tolerations", tolerations=[{"key": word, "operator": word, "value": word, "effect": word}]),
        pod("ports", containers=[{"name": word, "ports": [{"hostPort": 1, "hostIP": word, "protocol": word}]}]),
        pod("image", containers=[{"name": "c", "image": word}]),
        pod("resource", **requests(**{word: "1"})),
        pod("claim", **claims(word)),
        pod("disk", volumes=[{"name": word, "rbd": {"pool": word, "image": word, "monitors": [word]}}]),
        pod("owner", annotations={word: word}),
    ]
    world.schedule(*given)
    assert set(world.outcomes) == {document["metadata"]["name"] for document in given}
    world.assert_unharmed()


def test_a_name_of_a_megabyte_is_left_out_and_not_repeated_in_full(world, caplog):
    world.schedule(pod("n" * 2**20))
    assert len(caplog.text) < 10_000
    world.assert_unharmed()


@pytest.mark.parametrize("priority", [2**31 - 1, -(2**31), 2**31, 2**63, -(10**30), 10**30])
def test_a_priority_beyond_its_range_orders_pods_and_no_more(world, priority):
    assert world.schedule(pod(priority=priority, **requests(cpu="100"))).startswith("0/4 nodes")
    assert world.schedule(pod("other", priority=priority)).startswith(PLACED)
    world.place(pod("as-placed", priority=priority), "n2")
    world.assert_unharmed()


@pytest.mark.parametrize("weight", [2**31, -(2**63), 10**30, 0, -1])
def test_a_weight_beyond_its_range_does_not_wrap_around(world, weight):
    spec = near_pods(NEAR, [term(HOST, *EVERYWHERE)] * 3, preferred=True)
    for wish in spec["affinity"][NEAR]["preferredDuringSchedulingIgnoredDuringExecution"]:
        wish["weight"] = weight
    wishes = [{"weight": weight, "preference": {"matchExpressions": [expression(HOST, "Exists")]}}] * 3
    spec["affinity"]["nodeAffinity"] = {"preferredDuringSchedulingIgnoredDuringExecution": wishes}
    assert world.schedule(pod(**spec)).startswith(PLACED)
    world.place(pod("as-placed", **spec), "n2")
    world.assert_unharmed()
