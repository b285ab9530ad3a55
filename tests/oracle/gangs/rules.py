"""Scenarios of the basic policy, of gates and names of schedulers, and of rules between members of one gang."""

from tests.oracle.gangs.parts import (
    GATE,
    REST,
    ZONE,
    apart,
    gang,
    gone,
    group,
    member,
    members,
    opened,
    room,
    rooms,
    scenario,
    single,
    together,
    zones,
)
from tests.oracle.gangs.scenario import FIRST, SECOND, UNKNOWN, Family, Object, Step

_HOST = "kubernetes.io/hostname"


def _spread(key: str = _HOST, skew: int = 1, **more: object) -> Object:
    constraint = {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": "DoNotSchedule", **more}
    return {"topologySpreadConstraints": [{**constraint, "labelSelector": {"matchLabels": {"app": "a"}}}]}


def _labelled(least: int, count: int, **spec: object) -> list[Step]:
    return gang("a", least, count, labels={"app": "a"}, **spec)


def _port(number: int) -> Object:
    resources = {"requests": {"cpu": "1"}}
    ports = [{"containerPort": number, "hostPort": number}]
    return {"containers": [{"name": "main", "image": "pause", "resources": resources, "ports": ports}]}


BASIC = Family(
    "basic",
    "groups that need not run whole",
    (
        scenario("basic-fits", "all fit", rooms(3), gang("a", None, 3)),
        scenario("basic-in-part", "two of three fit", rooms(2), gang("a", None, 3)),
        scenario("basic-not-at-all", "none fits", rooms(1), gang("a", None, 2, cpu="2")),
        scenario("basic-one-by-one", "each member runs as it comes",
                 rooms(2), group("a", None), members("a", 1), REST, members("a", 1, first=2), REST,
                 members("a", 1, first=3)),
        scenario("basic-without-its-group", "members wait for a basic group as well",
                 rooms(2), members("a", 2), REST, group("a", None)),
        scenario("basic-and-late-room", "members left over run when room comes",
                 rooms(1), gang("a", None, 3), REST, room("n9", 2)),
        scenario("basic-without-nodes", "a cluster without nodes", gang("a", None, 2)),
        scenario("basic-and-gang", "a basic group takes what a gang needs",
                 rooms(2), gang("a", None, 1), REST, gang("b", 2, 2)),
    ),
)  # fmt: skip

NAMES = Family(
    "names",
    "names of schedulers",
    (
        scenario("second-profile", "a gang of another profile", rooms(2), gang("a", 2, 2, scheduler=SECOND)),
        scenario("two-profiles", "members of two profiles",
                 rooms(3), members("a", 2), members("a", 1, first=3, scheduler=SECOND), REST, group("a", 3)),
        scenario("two-profiles-beyond-the-least", "the member of the other profile is not needed",
                 rooms(3), members("a", 2), members("a", 1, first=3, scheduler=SECOND), REST, group("a", 2)),
        scenario("a-member-of-nobody", "a member whose scheduler does not run does not count",
                 rooms(3), members("a", 2), members("a", 1, first=3, scheduler=UNKNOWN), REST, group("a", 3)),
        scenario("a-member-of-nobody-beyond-the-least", "it is not missed either",
                 rooms(3), members("a", 2), members("a", 1, first=3, scheduler=UNKNOWN), REST, group("a", 2)),
        scenario("all-of-nobody", "a gang of a scheduler that does not run", rooms(2),
                 gang("a", 2, 2, scheduler=UNKNOWN)),
        scenario("bound-by-the-other-profile", "a bound member of the other profile",
                 rooms(3), member("a0", "a", on="n1", scheduler=SECOND), REST, gang("a", 2, 2, scheduler=FIRST)),
    ),
)  # fmt: skip

GATES = Family(
    "gates",
    "scheduling gates",
    (
        scenario("one-is-held", "one of three is gated, and two are asked for",
                 rooms(3), members("a", 2), members("a", 1, first=3, schedulingGates=GATE), REST, group("a", 2), REST,
                 opened("a3")),
        scenario("the-needed-one-is-held", "one of two is gated, and both are asked for",
                 rooms(2), members("a", 1), members("a", 1, first=2, schedulingGates=GATE), REST, group("a", 2), REST,
                 opened("a2")),
        scenario("all-are-held", "all are gated, and opened one by one",
                 rooms(2), gang("a", 2, 2, schedulingGates=GATE), REST, opened("a1"), REST, opened("a2")),
        scenario("the-held-one-goes", "the gated member goes",
                 rooms(3), members("a", 2), members("a", 1, first=3, schedulingGates=GATE), REST, group("a", 2), REST,
                 gone("a3")),
        scenario("one-more-is-held", "a further member of a running gang is gated",
                 rooms(3), gang("a", 2, 2), REST, members("a", 1, first=3, schedulingGates=GATE), REST, opened("a3")),
        scenario("one-more-is-held-while-all-wait", "a gated member comes to a gang that waits for room",
                 rooms(1), gang("a", 2, 2), REST, members("a", 1, first=3, schedulingGates=GATE), REST,
                 room("n9", 1), REST, opened("a3")),
        scenario("held-and-single", "a single pod runs beside a gated gang",
                 rooms(2), gang("a", 2, 2, schedulingGates=GATE), REST, single("s"), REST, opened("a1"), opened("a2")),
    ),
)  # fmt: skip

AFFINITY = Family(
    "affinity",
    "rules that members of one gang have for each other",
    (
        scenario("apart-and-enough-nodes", "a node for each member",
                 rooms(2, 2, 2), _labelled(3, 3, affinity=apart("app", "a"))),
        scenario("apart-and-too-few-nodes", "a node too few",
                 rooms(4, 4), _labelled(3, 3, affinity=apart("app", "a"))),
        scenario("apart-and-the-least", "two of three find a node of their own, and two are asked for",
                 rooms(4, 4), _labelled(2, 3, affinity=apart("app", "a"))),
        scenario("apart-and-a-node-comes", "the node that was missing comes",
                 rooms(4, 4), _labelled(3, 3, affinity=apart("app", "a")), REST, room("n9", 1)),
        scenario("together-in-a-zone", "members follow the first, and its zone is too small or not",
                 zones({"z": (3,)}), room("other", 1), _labelled(3, 3, affinity=together("app", "a", ZONE))),
        scenario("together-and-no-zone", "no node is in a zone",
                 rooms(2, 2), _labelled(2, 2, affinity=together("app", "a", ZONE))),
        scenario("together-with-a-single-pod", "members follow a pod that comes late",
                 zones({"z": (3,)}), _labelled(2, 2, affinity=together("app", "lead", ZONE)), REST,
                 single("s", labels={"app": "lead"})),
        scenario("by-selector", "members fit on labelled nodes only",
                 room("n1", 1, labels={"disk": "fast"}), room("n2", 1, labels={"disk": "fast"}), room("n3", 4),
                 gang("a", 3, 3, nodeSelector={"disk": "fast"})),
        scenario("by-selector-and-fits", "members fit on labelled nodes",
                 room("n1", 1, labels={"disk": "fast"}), room("n2", 1, labels={"disk": "fast"}), room("n3", 4),
                 gang("a", 2, 2, nodeSelector={"disk": "fast"})),
        scenario("two-gangs-apart", "members of two gangs keep away from each other",
                 rooms(2, 2), gang("a", 2, 2, labels={"app": "a"}, affinity=apart("app", "b")), REST,
                 gang("b", 2, 2, labels={"app": "b"}, affinity=apart("app", "a"))),
    ),
)  # fmt: skip

PORTS_AND_SPREAD = Family(
    "ports-and-spread",
    "host ports and spreading inside of a gang",
    (
        scenario("a-port-a-node", "a node for each port", rooms(2, 2), gang("a", 2, 2, **_port(8080))),
        scenario("a-port-too-many", "two nodes have the port free, and three need it",
                 rooms(2, 2), gang("a", 3, 3, **_port(8080))),
        scenario("a-port-too-many-and-the-least", "two of three are asked for",
                 rooms(2, 2), gang("a", 2, 3, **_port(8080))),
        scenario("a-port-that-others-have", "a single pod has the port on one of two nodes",
                 rooms(2, 2), single("s", nodeSelector={_HOST: "n1"}, **_port(8080)), REST,
                 gang("a", 2, 2, **_port(8080)), REST, gone("s")),
        scenario("evenly", "one more on a node than on the other", rooms(3, 3), _labelled(3, 3, **_spread())),
        scenario("unevenly", "room ends on one node before it does on the other",
                 rooms(1, 4), _labelled(4, 4, **_spread())),
        scenario("unevenly-and-the-least", "as many as may stand there", rooms(1, 4), _labelled(3, 4, **_spread())),
        scenario("over-zones", "members go over zones in turns",
                 zones({"x": (2,), "y": (2,)}), _labelled(4, 4, **_spread(ZONE))),
        scenario("over-zones-and-one-is-small", "a zone is too small",
                 zones({"x": (1,), "y": (4,)}), _labelled(4, 4, **_spread(ZONE)), REST,
                 room("x-2", 1, labels={ZONE: "x"})),
        scenario("a-wider-skew", "a zone may have two more", zones({"x": (1,), "y": (4,)}),
                 _labelled(4, 4, **_spread(ZONE, 2))),
    ),
)  # fmt: skip
