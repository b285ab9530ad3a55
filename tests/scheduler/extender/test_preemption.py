from dataclasses import replace

import pytest
from tests.builders import make_node, make_pod
from tests.plugins.preemption.worlds import World
from tests.scheduler.extender.extender_server import keep
from tests.scheduler.extender.scene import ExtendedScene, at

from bayplan.config.connections import Extender, ExtenderManagedResource
from bayplan.scheduler.decision import FitError

BY_UID = Extender(preempt_verb="preempt", node_cache_capable=True)
WHOLE = replace(BY_UID, node_cache_capable=False)
INSUFFICIENT = "0/3 nodes are available: 3 Insufficient cpu."


class Scene(ExtendedScene):
    """Three full nodes, of which the scheduler alone would choose n0, and extenders that are asked."""

    def __init__(self, stack, *extenders):
        world = World(
            *(make_node(f"n{number}", cpu="4") for number in range(3)),
            *(self.low(f"a{number}", f"n{number}", number) for number in range(3)),
            *(self.low(f"b{number}", f"n{number}", number) for number in range(3)),
        )
        super().__init__(stack, world, extenders)

    @staticmethod
    def low(name, node, priority):
        return make_pod(name, uid=name, node=node, cpu="2", priority=priority)

    async def decide(self, **fields):
        outcome = await self.schedule(make_pod("p", **{"uid": "p", "cpu": "4", "priority": 10, **fields}))
        assert isinstance(outcome, FitError)
        return outcome

    async def choice(self, **fields):
        outcome = await self.decide(**fields)
        return outcome.post_filter.nominated_node_name, [victim.uid for victim in outcome.post_filter.victims]


def propose(violations=0, **nodes):
    victims = {
        name: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": violations} for name, uids in nodes.items()
    }
    return lambda body: {"NodeNameToMetaVictims": victims}


@pytest.mark.parametrize("extender", [BY_UID, WHOLE], ids=["by uid", "whole pods"])
async def test_an_extender_is_told_of_all_candidates_and_leaves_some(stack, server, extender):
    server.answers = {"preempt": propose(n1=["a1", "b1"], n2=["a2", "b2"])}
    scene = Scene(stack, at(server, extender))
    assert await scene.choice() == ("n1", ["a1", "b1"])
    ((verb, told),) = server.calls
    assert verb == "preempt"
    assert told["Pod"]["metadata"]["annotations"] == {"a": "b"}
    if extender is BY_UID:
        assert told["NodeNameToVictims"] is None
        assert told["NodeNameToMetaVictims"]["n1"] == {"Pods": [{"UID": "a1"}, {"UID": "b1"}], "NumPDBViolations": 0}
        assert sorted(told["NodeNameToMetaVictims"]) == ["n0", "n1", "n2"]
    else:
        assert told["NodeNameToMetaVictims"] is None
        (first, _) = told["NodeNameToVictims"]["n2"]["Pods"]
        assert (first["metadata"]["uid"], first["spec"]["nodeName"]) == ("a2", "n2")


async def test_an_extender_may_choose_other_victims_and_what_it_says_of_budgets_counts(stack, server):
    server.answers = {"preempt": propose(n0=["b0"])}
    assert await Scene(stack, at(server, BY_UID)).choice() == ("n0", ["b0"])
    broken = propose(2, n0=["a0"])({})["NodeNameToMetaVictims"] | propose(1, n2=["a2"])({})["NodeNameToMetaVictims"]
    server.answers = {"preempt": lambda body: {"nodeNameToMetaVictims": broken}}
    assert await Scene(stack, at(server, BY_UID)).choice() == ("n2", ["a2"])


async def test_extenders_are_asked_one_after_the_other_about_what_the_last_one_left(stack, server, other):
    server.answers = {"preempt": propose(n1=["a1"], n2=["a2"])}
    other.answers = {"preempt": propose(n2=["a2", "b2"])}
    assert await Scene(stack, at(server, BY_UID), at(other, BY_UID)).choice() == ("n2", ["a2", "b2"])
    assert [*other.calls[0][1]["NodeNameToMetaVictims"]] == ["n1", "n2"]


async def test_an_extender_that_leaves_nothing_ends_the_preemption_and_no_other_is_asked(stack, server, other):
    server.answers = {"preempt": lambda body: {}}
    outcome = await Scene(stack, at(server, BY_UID), at(other, BY_UID)).decide()
    assert outcome.message == f"{INSUFFICIENT} preemption: no candidate node for preemption"
    assert (outcome.post_filter.nominated_node_name, outcome.post_filter.victims, outcome.post_filter.candidates) == (
        None,
        (),
        (),
    )
    assert other.calls == []


URL = "URL"


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (propose(n9=["a1"]), 'nodeinfo not found for node name "n9"'),
        (
            propose(n1=["a2"]),
            f"extender: {URL} claims to preempt pod (UID: &{{a2}}) on node: n1, but the pod is not found on that node",
        ),
        (propose(n1=[]), 'expected at least one victim pod on node "n1"'),
        (lambda body: {"NodeNameToMetaVictims": {"n1": None}}, 'expected at least one victim pod on node "n1"'),
        (lambda body: {"NodeNameToMetaVictims": []}, "the answer's nodenametometavictims is a list, not a dict"),
        (lambda body: {"NodeNameToMetaVictims": {"n1": 3}}, "a node's victims is not an object"),
        (lambda body: {"NodeNameToMetaVictims": {"n1": {"Pods": ["a1"]}}}, "a victim is not an object"),
        (lambda body: [], "the answer is not an object"),
    ],
)
async def test_an_answer_that_cannot_be_followed_fails_the_preemption_unless_the_extender_is_ignorable(
    stack, server, answer, told
):
    server.answers = {"preempt": answer}
    outcome = await Scene(stack, at(server, BY_UID)).decide()
    assert outcome.message == f"{INSUFFICIENT} preemption: {told.replace(URL, server.url)}"
    assert outcome.post_filter.nominated_node_name is None
    empty = "at least one" in told
    chosen = (None, []) if empty else ("n0", ["a0", "b0"])
    assert await Scene(stack, at(server, BY_UID, ignorable=True)).choice() == chosen


async def test_an_extender_that_answers_an_error_is_no_better(stack, server):
    server.status = 500
    outcome = await Scene(stack, at(server, BY_UID)).decide()
    assert "preemption: failed preempt with extender at URL" in outcome.message
    assert (await Scene(stack, at(server, BY_UID, ignorable=True)).choice())[0] == "n0"


async def test_only_interested_extenders_with_the_verb_are_asked_and_only_when_there_is_a_candidate(stack, server):
    server.answers = {"filter": keep("n0", "n1", "n2")}
    uninterested = at(server, BY_UID, managed_resources=(ExtenderManagedResource("example.com/gpu"),))
    without_verb = at(server, BY_UID, preempt_verb="", filter_verb="filter")
    assert (await Scene(stack, uninterested, without_verb).choice())[0] == "n0"
    scene = Scene(stack, at(server, BY_UID))
    assert await scene.choice(priority=-5) == ("", [])
    assert (server.calls, scene.reads) == ([], 0)


async def test_a_pod_that_only_extenders_rejected_preempts_where_they_let_it(stack, server):
    server.answers = {"filter": keep(failed={"n3": "no licence"}), "preempt": propose(n3=["x"])}
    scene = Scene(stack, at(server, BY_UID, filter_verb="filter"))
    scene.world.add(make_node("n3", cpu="8"), scene.low("x", "n3", 1))
    outcome = await scene.decide()
    found = "preemption: found a potential placement for pod on node n3, preempting 1 victims"
    assert outcome.message == f"0/4 nodes are available: 1 no licence, 3 Insufficient cpu. {found}"
    assert (outcome.post_filter.nominated_node_name, [victim.uid for victim in outcome.post_filter.victims]) == (
        "n3",
        ["x"],
    )
