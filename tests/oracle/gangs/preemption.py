"""Scenarios in which there is somebody to evict: for gangs, and of gangs."""

from tests.oracle.gangs.parts import REST, gang, group, members, rooms, scenario, single
from tests.oracle.gangs.scenario import NEVER, Create, Family

WHOLE = {"disruptionMode": {"all": {}}}
"""What a group says that ends as one."""
BUDGET = Create(
    "poddisruptionbudgets",
    {"metadata": {"name": "keep"}, "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "kept"}}}},
)
"""The budget of the pods with the label `app: kept`, which allows no eviction."""

PREEMPTION = Family(
    "preemption",
    "gangs that make room, and gangs that give it",
    (
        scenario("lower-fits", "the higher one does not fit, the lower one does",
                 rooms(2), gang("b", 3, 3, priority="high"), REST, gang("a", 2, 2, priority="low")),
        scenario("over-single-pods", "a gang evicts single pods of a lower class",
                 rooms(2), single("s", priority="low"), single("t", priority="low"), REST,
                 gang("a", 2, 2, priority="high")),
        scenario("over-one-pod-of-two", "a gang evicts no more than it needs",
                 rooms(3), single("s", priority="low"), single("t", priority="middle"), REST,
                 gang("a", 2, 2, priority="high")),
        scenario("not-even-so", "evicting all would not be enough",
                 rooms(2), single("s", priority="low"), REST, gang("a", 3, 3, priority="high")),
        scenario("of-equals", "nobody is of a lower class",
                 rooms(2), single("s", priority="high"), REST, gang("a", 2, 2, priority="high")),
        scenario("by-none", "a gang that preempts nobody",
                 rooms(2), single("s", priority="low"), REST, gang("a", 2, 2, priority=NEVER)),
        scenario("over-a-gang", "a gang of the mode single loses members",
                 rooms(3), gang("b", 2, 3, priority="low"), REST, gang("a", 2, 2, priority="high")),
        scenario("over-a-whole-gang", "a gang of the mode all goes as one",
                 rooms(3), members("b", 3, priority="low"), group("b", 2, priority="low", **WHOLE), REST,
                 gang("a", 2, 2, priority="high")),
        scenario("single-over-a-gang", "a single pod evicts one member",
                 rooms(2), gang("b", 2, 2, priority="low"), REST, single("s", priority="high")),
        scenario("single-over-a-whole-gang", "a single pod evicts a gang of the mode all",
                 rooms(1, 1), members("b", 2, priority="low"), group("b", 2, priority="low", **WHOLE), REST,
                 single("s", priority="high")),
        scenario("over-a-basic-group", "members of a basic group go one by one",
                 rooms(3), gang("b", None, 3, priority="low"), REST, gang("a", 2, 2, priority="high")),
        scenario("over-pods-with-a-budget", "pods without a budget go first",
                 rooms(4), BUDGET,
                 single("k", priority="low", labels={"app": "kept"}),
                 single("l", priority="low", labels={"app": "kept"}),
                 single("s", priority="low"), single("t", priority="low"), REST, gang("a", 2, 2, priority="high")),
        scenario("members-left-over-evict", "a member beyond the least evicts for itself",
                 rooms(3), single("s", priority="low"), REST, gang("a", 2, 3, priority="high")),
    ),
)  # fmt: skip
