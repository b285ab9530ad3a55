"""Scenarios about who counts: how many members there must be, when their group comes, and how many have room."""

from e2e.controlplane.objects import node, pod
from tests.oracle.gangs.parts import (
    REST,
    apart,
    gang,
    gone,
    group,
    least_becomes,
    member,
    members,
    room,
    rooms,
    scenario,
    single,
)
from tests.oracle.gangs.scenario import UNKNOWN, Change, Create, Delete, Family

_ENDED = {"status": {"phase": "Succeeded"}}
_ELSEWHERE = {"metadata": {"name": "elsewhere"}}

QUORUM = Family(
    "quorum",
    "how many members a gang waits for, and how many fit",
    (
        scenario(
            "the-last-member-starts-all",
            "two of three wait in silence, and the third starts all",
            rooms(3), group("a", 3), members("a", 2), REST, members("a", 1, first=3),
        ),
        scenario("never-enough-members", "two members of three that are asked for", rooms(3), gang("a", 3, 2)),
        scenario("as-many-as-asked-for", "all fit and all are needed", rooms(1, 1, 1), gang("a", 3, 3)),
        scenario("more-than-asked-for", "two are needed, four fit", rooms(4), gang("a", 2, 4)),
        scenario("room-for-the-least", "two are needed, and two of four fit", rooms(2), gang("a", 2, 4)),
        scenario("room-for-one-more", "three are needed, and four of six fit", rooms(2, 2), gang("a", 3, 6)),
        scenario("least-of-one", "one is needed, and two of three fit", rooms(2), gang("a", 1, 3)),
        scenario("one-too-few", "three are needed, and two fit", rooms(2), gang("a", 3, 3)),
        scenario("two-too-few", "four are needed, two fit: the last is not tried", rooms(2), gang("a", 4, 4)),
        scenario("six-and-room-for-two", "five are needed of six, and two fit", rooms(1, 1), gang("a", 5, 6)),
        scenario("fits-nowhere", "every member is larger than every node", rooms(1, 1), gang("a", 2, 3, cpu="2")),
        scenario("no-node-at-all", "a cluster without nodes", gang("a", 2, 2)),
        scenario("least-without-end", "the highest number there is", rooms(4), gang("a", 2147483647, 3)),
        scenario(
            "bound-by-hand",
            "a member that came with its node counts",
            rooms(3), member("a0", "a", on="n1"), gang("a", 3, 2),
        ),
        scenario(
            "bound-by-others",
            "a bound member of a scheduler that is not there stops its group",
            rooms(3), member("a0", "a", on="n1", scheduler=UNKNOWN), gang("a", 3, 2),
        ),
        scenario(
            "ended-member",
            "a member that has ended does not count",
            rooms(3), member("a0", "a", on="n1"), REST, Change("pods", "a0", _ENDED, "status"), REST, gang("a", 2, 1),
        ),
        scenario(
            "members-of-another-namespace",
            "a group of that name elsewhere has its own members",
            rooms(3), Create("namespaces", _ELSEWHERE),
            Create("pods", pod("a3", "elsewhere", scheduler="gangs", requests={"cpu": "1"},
                               schedulingGroup={"podGroupName": "a"})),
            gang("a", 3, 2),
        ),
        scenario("alone", "a gang of one", rooms(1), gang("a", 1, 1)),
        scenario("alone-and-no-room", "a gang of one that does not fit", rooms(1), gang("a", 1, 1, cpu="2")),
        scenario(
            "as-many-pods-as-a-node-takes",
            "a node takes two pods, and has CPUs for nine",
            Create("nodes", node("n1", cpu="9", pods="2")), gang("a", 3, 4),
        ),
    ),
)  # fmt: skip

LATE_GROUP = Family(
    "late-group",
    "pods that name a group which is not there, or not yet",
    (
        scenario("group-after-its-pods", "pods wait for their group", rooms(3), members("a", 3), REST, group("a", 3)),
        scenario("group-that-never-comes", "two pods of a group that is not there", rooms(3), members("a", 2)),
        scenario(
            "one-group-of-two",
            "the pods of the group that is there run",
            rooms(4), members("a", 2), members("b", 2), group("b", 2), REST,
        ),
        scenario(
            "group-in-the-middle",
            "a member, the group, and the others",
            rooms(3), members("a", 1), group("a", 3), members("a", 2, first=2),
        ),
        scenario(
            "group-comes-again",
            "a group that goes before its pods run, and comes again",
            rooms(1), gang("a", 2, 2), REST, Delete("podgroups", "a", finalizers=True), REST,
            room("n9", 2), REST, group("a", 2),
        ),
        scenario(
            "group-comes-again-smaller",
            "the new group of that name asks for fewer",
            rooms(2), gang("a", 3, 3), REST, Delete("podgroups", "a", finalizers=True), REST, group("a", 2),
        ),
        scenario(
            "single-pods-are-not-held-up",
            "pods of no group run beside those that wait for one",
            rooms(3), members("a", 2), single("s"),
        ),
    ),
)  # fmt: skip

LEAST = Family(
    "least",
    "minCount that changes",
    (
        scenario("lowered-to-the-members", "the least becomes what is there",
                 rooms(3), gang("a", 3, 2), REST, least_becomes("a", 2)),
        scenario("lowered-to-the-room", "the least becomes what fits",
                 rooms(2), gang("a", 3, 3), REST, least_becomes("a", 2)),
        scenario("lowered-and-not-enough", "the least is lowered, and it still does not fit",
                 rooms(1), gang("a", 3, 3), REST, least_becomes("a", 2)),
        scenario("raised-and-then-room", "the least goes up while there is no room, and room comes",
                 rooms(1), gang("a", 2, 3), REST, least_becomes("a", 3), REST, room("n9", 1), REST, room("n8", 1)),
        scenario("raised-above-the-members", "the least goes up above the members while there is no room",
                 rooms(1), gang("a", 2, 2), REST, least_becomes("a", 3), REST, room("n9", 2)),
        scenario("raised-when-all-run", "the least goes up when all run, and one more comes",
                 rooms(4), gang("a", 2, 2), REST, least_becomes("a", 4), REST, members("a", 1, first=3), REST,
                 members("a", 1, first=4)),
    ),
)  # fmt: skip

EXTRA = Family(
    "extra",
    "members that come when their gang runs, and members that go",
    (
        scenario("one-more", "a further member binds alone", rooms(3), gang("a", 2, 2), REST, members("a", 1, first=3)),
        scenario("one-more-without-room", "a further member that does not fit waits",
                 rooms(2), gang("a", 2, 2), REST, members("a", 1, first=3)),
        scenario("two-more-and-room-for-one", "of two further members one fits",
                 rooms(3), gang("a", 2, 2), REST, members("a", 2, first=3)),
        scenario("a-new-one-for-an-old-one", "a running member is replaced",
                 rooms(2), gang("a", 2, 2), REST, gone("a1"), REST, members("a", 1, first=3)),
        scenario("one-more-in-the-room-of-another", "a further member takes the room of one that goes",
                 rooms(2), gang("a", 2, 3), REST, gone("a1")),
        scenario("two-go-and-one-comes", "a gang below its least waits for as many as are missing",
                 rooms(3), gang("a", 3, 3), REST, gone("a1", "a2"), REST, members("a", 1, first=4), REST,
                 members("a", 1, first=5)),
        scenario("a-waiting-member-goes", "a member goes while all wait for room",
                 rooms(2), gang("a", 3, 3), REST, gone("a2"), REST, members("a", 1, first=4), room("n9", 1)),
        scenario("a-waiting-member-goes-of-enough", "a member too many goes while all wait for room",
                 rooms(1), gang("a", 2, 3), REST, gone("a2"), REST, room("n9", 1)),
        scenario("all-waiting-members-go", "the members go, and others come",
                 rooms(2), gang("a", 3, 3), REST, gone("a1", "a2", "a3"), REST, members("a", 2, first=4), REST,
                 least_becomes("a", 2)),
        scenario("group-goes-and-pods-stay", "a group that is deleted stays as long as its pods, and is scheduled",
                 rooms(1), gang("a", 2, 2), REST, Delete("podgroups", "a"), REST, room("n9", 1)),
        scenario("group-goes-when-all-run", "a further member of a group that is on its way out",
                 rooms(3), gang("a", 2, 2), REST, Delete("podgroups", "a"), REST, members("a", 1, first=3)),
        scenario("group-is-gone-when-all-run", "a further member of a group that is gone",
                 rooms(3), gang("a", 2, 2), REST, Delete("podgroups", "a", finalizers=True), REST,
                 members("a", 1, first=3)),
        scenario("apart-and-one-more", "a further member keeps away from those that run",
                 rooms(2, 2), gang("a", 2, 2, labels={"app": "a"}, affinity=apart("app", "a")), REST,
                 members("a", 1, first=3, labels={"app": "a"}, affinity=apart("app", "a")), REST, room("n9", 1)),
    ),
)  # fmt: skip
