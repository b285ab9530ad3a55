"""The first line of an explanation says what is, and the one thing that would change it."""

import msgspec
from tests.builders import make_pod_info
from tests.live.live_scene import LiveScene

from bayplan.cli.explanation_lines import live_lines
from bayplan.live.answers import ExplanationAnswer


async def lines_of(scene, name):
    return [*live_lines(msgspec.convert(await scene.explain(name), ExplanationAnswer))]


async def test_a_gated_pod_begins_with_its_gate():
    scene = LiveScene()
    scene.node("n1", cpu="4")
    scene.pod("held", gates=["team/ready"])
    first = (await lines_of(scene, "held"))[0]
    assert first == "default/held: gated, waiting for scheduling gates: [team/ready]; without that it goes to n1"


async def test_a_pod_on_a_node_begins_with_the_decision_that_was_taken():
    scene = LiveScene()
    await scene.first_attempt("p", cpu="1")
    first = (await lines_of(scene, "p"))[0]
    assert first.startswith("default/p: being bound to n1, decided at ")
    assert first.endswith("; 1 of 1 nodes fitted")


async def test_a_decision_that_is_forgotten_is_said_to_be():
    scene = LiveScene()
    scene.node("n1", cpu="4")
    scene.cache.set_pod(make_pod_info("p", cpu="1", node="n1"))
    assert (await lines_of(scene, "p"))[0] == "default/p: bound to n1, scheduled; how it was decided is not remembered"
