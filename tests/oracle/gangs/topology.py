"""Scenarios of groups that stand in one value of a topology key; they need TopologyAwareWorkloadScheduling."""

from tests.oracle.gangs.parts import REST, ZONE, group, member, members, room, rooms, scenario, single, zones
from tests.oracle.gangs.scenario import Create, Family, Step

GATE = "TopologyAwareWorkloadScheduling"


def _packed(name: str, least: int | None, count: int, key: str = ZONE) -> list[Step]:
    return [*members(name, count), _group(name, least, key)]


def _group(name: str, least: int | None, key: str = ZONE) -> Create:
    return group(name, least, schedulingConstraints={"topology": [{"key": key}]})


TOPOLOGY = Family(
    "topology",
    "gangs in one zone",
    (
        scenario("the-zone-that-fits", "one of two zones has room for all",
                 zones({"x": (2,), "y": (2, 2)}), _packed("a", 4, 4), places=False),
        scenario("no-zone-fits", "both together would have room",
                 zones({"x": (2,), "y": (2,)}), _packed("a", 3, 3)),
        scenario("no-node-has-the-key", "no node is in a zone", rooms(2, 2), _packed("a", 2, 2)),
        scenario("nodes-without-the-key", "a node without the label is in no zone",
                 zones({"x": (2,)}), room("n1", 4), _packed("a", 3, 3)),
        scenario("as-many-as-fit-in-a-zone", "the least fits in either zone, more in one",
                 zones({"x": (2,), "y": (3,)}), _packed("a", 2, 4)),
        scenario("where-the-first-stands", "a bound member names the zone",
                 zones({"x": (1,), "y": (4,)}), member("a0", "a", on="x-1"), REST, _packed("a", 2, 2)),
        scenario("in-two-zones-already", "bound members are in two zones",
                 zones({"x": (2,), "y": (2,)}), member("a8", "a", on="x-1"), member("a9", "a", on="y-1"), REST,
                 _packed("a", 3, 1)),
        scenario("in-no-zone-already", "a bound member is on a node without the label",
                 zones({"x": (2,)}), room("n1", 1), member("a0", "a", on="n1"), REST, _packed("a", 2, 2)),
        scenario("two-gangs-in-two-zones", "each takes a zone",
                 zones({"x": (2,), "y": (2,)}), _packed("a", 2, 2), REST, _packed("b", 2, 2)),
        scenario("a-zone-comes", "the zone that is large enough comes late",
                 zones({"x": (1,)}), _packed("a", 2, 2), REST, zones({"y": (2,)})),
        scenario("a-rack-of-hosts", "a key of which each node is a value",
                 rooms(1, 2), _packed("a", 2, 2, "kubernetes.io/hostname")),
        scenario("beside-single-pods", "a single pod is in the way in one zone",
                 zones({"x": (2,), "y": (2,)}), single("s", nodeSelector={ZONE: "x"}), REST, _packed("a", 2, 2)),
        scenario("basic-in-a-zone", "a basic group keeps to a zone as well",
                 zones({"x": (1,), "y": (2,)}), _packed("a", None, 3)),
        scenario("without-a-key", "the gate alone changes the words",
                 rooms(2), members("a", 3), group("a", 3)),
    ),
    gates=(GATE,),
)  # fmt: skip
