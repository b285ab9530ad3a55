"""Scenarios of gangs beside gangs and single pods, of priorities, and of room that comes late."""

from e2e.controlplane.objects import node
from tests.oracle.gangs.parts import REST, gang, gone, group, in_turns, members, room, rooms, scenario, single
from tests.oracle.gangs.scenario import NEVER, Change, Create, Delete, Family

_CORDON_OFF = {"spec": {"unschedulable": None}}
_TAINT = [{"key": "example.com/closed", "effect": "NoSchedule"}]
_LARGER = {"cpu": "3", "memory": "16Gi", "pods": "110"}

LATE_ROOM = Family(
    "late-room",
    "gangs that wait until there is room",
    (
        scenario("a-node-comes", "a second node", rooms(1), gang("a", 2, 2), REST, room("n9", 1)),
        scenario("a-node-is-not-enough", "the second node is not enough, the third is",
                 rooms(1), gang("a", 3, 3), REST, room("n8", 1), REST, room("n9", 1)),
        scenario("the-first-node-comes", "a cluster without nodes gets one", gang("a", 2, 2), REST, room("n9", 2)),
        scenario("a-pod-goes", "a single pod makes room",
                 rooms(2), single("s"), REST, gang("a", 2, 2), REST, gone("s")),
        scenario("one-pod-of-two-goes", "the first single pod's room is not enough",
                 rooms(2), single("s"), single("t"), REST, gang("a", 2, 2), REST, gone("s"), REST, gone("t")),
        scenario("a-node-is-opened", "a cordon is taken off",
                 rooms(1), room("n9", 1, cordoned=True), gang("a", 2, 2), REST, Change("nodes", "n9", _CORDON_OFF)),
        scenario("a-taint-goes", "a taint is taken off", rooms(1), Create("nodes", node("n9", cpu="1", taints=_TAINT)),
                 gang("a", 2, 2), REST, Change("nodes", "n9", {"spec": {"taints": None}})),
        scenario("a-node-grows", "a node says that it has more",
                 rooms(1), gang("a", 3, 3), REST,
                 Change("nodes", "n1", {"status": {"capacity": _LARGER, "allocatable": _LARGER}}, "status")),
        scenario("a-node-gets-the-label", "members wait for nodes with a label",
                 rooms(1, 1), gang("a", 2, 2, nodeSelector={"disk": "fast"}), REST,
                 Change("nodes", "n1", {"metadata": {"labels": {"disk": "fast"}}}), REST,
                 Change("nodes", "n2", {"metadata": {"labels": {"disk": "fast"}}})),
        scenario("a-gang-goes", "a gang's room is for the next one",
                 rooms(2), gang("a", 2, 2), REST, gang("b", 2, 2), REST, gone("a1", "a2")),
        scenario("a-node-goes", "a node goes while a gang waits for more", rooms(1, 1), gang("a", 3, 3), REST,
                 Delete("nodes", "n2"), REST, room("n8", 2)),
        scenario("room-for-those-left-over", "members left over run when room comes",
                 rooms(2), gang("a", 2, 4), REST, room("n8", 1), REST, room("n9", 1)),
    ),
)  # fmt: skip

TWO_GANGS = Family(
    "two-gangs",
    "gangs for which there is room for some",
    (
        scenario("one-after-the-other", "the first takes the room", rooms(2), gang("a", 2, 2), REST, gang("b", 2, 2)),
        scenario("both-fit", "two gangs on two nodes", rooms(2, 2), gang("a", 2, 2), gang("b", 2, 2)),
        scenario("both-groups-first", "groups first, then the members of one and of the other",
                 rooms(2), group("a", 2), group("b", 2), members("a", 2), REST, members("b", 2)),
        scenario("members-in-turns", "the members come in turns",
                 rooms(3), group("a", 3), group("b", 3), in_turns(members("a", 3), members("b", 3))),
        scenario("members-in-turns-and-half-the-room", "the members come in turns, and no gang fits",
                 rooms(2), group("a", 3), group("b", 3), in_turns(members("a", 3), members("b", 3))),
        scenario("large-then-small", "the large one does not fit, the small one does",
                 rooms(2), gang("a", 4, 4), REST, gang("b", 2, 2)),
        scenario("small-then-large", "the small one leaves too little for the large one",
                 rooms(4), gang("b", 2, 2), REST, gang("a", 4, 4)),
        scenario("three-and-room-for-two", "the third waits",
                 rooms(2, 2), gang("a", 2, 2), REST, gang("b", 2, 2), REST, gang("c", 2, 2)),
        scenario("room-for-both-comes-late", "two wait and both fit",
                 gang("a", 2, 2), gang("b", 2, 2), REST, room("n9", 4)),
        scenario("the-least-of-both", "both asked for fewer than they are",
                 rooms(4), gang("a", 2, 3), REST, gang("b", 1, 3)),
        scenario("waiting-members-of-both", "room comes for those that both have left over",
                 rooms(2, 1), gang("a", 2, 3, cpu="1"), REST, gang("b", 1, 2), REST, room("n9", 4)),
        scenario("a-gang-on-each-node", "members of one gang fit on one node each",
                 rooms(2, 2), gang("a", 2, 2, cpu="2"), REST, gang("b", 1, 1)),
    ),
)  # fmt: skip

SINGLES = Family(
    "singles",
    "gangs and single pods",
    (
        scenario("singles-first", "single pods leave too little", rooms(3), single("s"), single("t"), REST,
                 gang("a", 2, 2)),
        scenario("a-waiting-gang-holds-nothing", "a single pod runs in room that a gang found too small",
                 rooms(2), gang("a", 3, 3), REST, single("s"), single("t")),
        scenario("singles-in-turns", "members and single pods in turns",
                 rooms(6), group("a", 3), in_turns(members("a", 3), [single("s"), single("t"), single("u")])),
        scenario("singles-after", "single pods take what a gang left",
                 rooms(3), gang("a", 2, 2), REST, single("s"), single("t")),
        scenario("launcher-and-workers", "a small launcher and big workers fit together",
                 rooms(2, 2), members("a", 2, cpu="2"), [*members("a", 1, first=3, cpu="0")], REST, group("a", 3)),
        scenario("launcher-and-too-big-workers", "the launcher waits with its workers",
                 rooms(2, 1), members("a", 1, cpu="500m"), members("a", 2, first=2, cpu="2"), REST, group("a", 3)),
        scenario("big-after-small", "small members take the room of the big one",
                 rooms(3), members("a", 2, cpu="1"), members("a", 1, first=3, cpu="2"), REST, group("a", 3)),
        scenario("big-before-small", "a big member and as many small ones as fit",
                 rooms(3), members("a", 1, cpu="2"), members("a", 2, first=2, cpu="1"), REST, group("a", 2)),
    ),
)  # fmt: skip

PRIORITIES = Family(
    "priorities",
    "priorities of groups and of their members, with nobody to evict",
    (
        scenario("of-one-class", "group and members of one class", rooms(2), gang("a", 2, 2, priority="high")),
        scenario("members-alone", "members have a class and their group has none",
                 rooms(2), members("a", 2, priority="high"), REST, group("a", 2)),
        scenario("group-alone", "the group has a class and its members have none",
                 rooms(2), members("a", 2), REST, group("a", 2, priority="high")),
        scenario("one-member-of-another-class", "one member is of another class",
                 rooms(3), members("a", 2, priority="high"), members("a", 1, first=3, priority="low"), REST,
                 group("a", 3, priority="high")),
        scenario("another-class-beyond-the-least", "the member of another class is not needed",
                 rooms(3), members("a", 2, priority="high"), members("a", 1, first=3, priority="low"), REST,
                 group("a", 2, priority="high")),
        scenario("one-member-preempts-nobody", "members differ in whether they preempt",
                 rooms(3), members("a", 2, priority="high"), members("a", 1, first=3, priority=NEVER), REST,
                 group("a", 3, priority="high")),
        scenario("none-preempts", "a gang that preempts nobody and does not fit", rooms(1),
                 gang("a", 2, 2, priority=NEVER)),
        scenario("higher-goes-first", "both were gated, and the higher one takes the room",
                 rooms(2), gang("a", 2, 3, priority="low", schedulingGates=[{"name": "example.com/hold"}]),
                 gang("b", 2, 2, priority="high"), REST),
        scenario("higher-does-not-fit-with-single-pods", "single pods of a higher class are no victims",
                 rooms(2), single("s", priority="high"), REST, gang("a", 2, 2, priority="middle")),
        scenario("equals-are-no-victims", "a gang of the same class is no victim",
                 rooms(2), gang("a", 2, 2, priority="middle"), REST, gang("b", 2, 2, priority="middle")),
    ),
)  # fmt: skip
