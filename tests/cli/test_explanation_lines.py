"""The first line of an explanation says what is, and the one thing that would change it."""

import msgspec
from tests.builders import make_pod_info, make_term
from tests.devices.device_builders import exactly, make_class, make_gpus
from tests.live.live_scene import LiveScene
from tests.plugins.dynamic_resources.device_scene import claim, claiming

from bayplan.cli.explanation_lines import asked_lines, live_lines
from bayplan.live.answers import ExplanationAnswer, SimulationAnswer
from bayplan.simulate.report import AttemptReport, PodReport


async def lines_of(scene, name):
    return [*live_lines(msgspec.convert(await scene.explain(name), ExplanationAnswer))]


async def test_a_gated_pod_begins_with_its_gate():
    scene = LiveScene()
    scene.node("n1", cpu="4")
    scene.pod("held", gates=["team/ready"])
    first = (await lines_of(scene, "held"))[0]
    assert first == "default/held: gated, waiting for scheduling gates: [team/ready]; without that it goes to n1"


async def test_a_pod_of_which_a_filter_cannot_say_begins_with_what_that_says():
    scene = LiveScene()
    scene.node("n1", cpu="4")
    scene.cache.listers.fill([make_class(), make_gpus("n1"), claim("c", exactly("r", 1, "device.attributes.x.y == 1"))])
    scene.pending.changed(claiming("c").pod)
    await scene.attempt()
    told = await scene.explain("p", "ns")
    answer = [*live_lines(msgspec.convert(told, ExplanationAnswer))]
    problem = 'running "DynamicResources" filter plugin: '
    assert answer[0].startswith(f"ns/p: waits, {problem}")
    assert answer[1].startswith(f"  now: {problem}")
    assert not any("would help" in line for line in answer)
    assert told["message"] == told["explanation"]["failed"] == told["queue"]["message"]


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


async def test_a_pod_that_is_nominated_begins_with_where_its_room_is_kept_and_whom_it_evicts():
    scene = LiveScene()
    scene.node("n1", cpu="1")
    scene.pod("high", cpu="1", nominated="n1")
    (high,) = scene.queue.queued()
    low = make_pod_info("low", node="n1")
    scene.scheduler.decisions.failed(high.pod_info, "0/1 nodes are available", 0.001, preempted=[low])
    first = (await lines_of(scene, "high"))[0]
    assert first == "default/high: waits for room on n1, which is kept for it: it evicts default/low"


async def test_a_pod_that_is_pinned_begins_with_its_node_and_what_is_against_it_there():
    scene = LiveScene()
    scene.node("n1", cpu="1")
    scene.node("n2", cpu="9")
    scene.pod("daemon", cpu="2", node_affinity=[make_term(fields=["metadata.name In n1"])])
    await scene.attempt()
    first = (await lines_of(scene, "daemon"))[0]
    assert first == (
        "default/daemon: waits, no node fits; pinned to n1, which does not take it: "
        "NodeResourcesFit: cpu, asked 2000m, most free 1000m on n1 (n1)"
    )


async def test_a_pod_that_is_pinned_to_a_node_that_is_gone_says_so():
    scene = LiveScene()
    scene.node("n2", cpu="9")
    scene.pod("daemon", cpu="2", node_affinity=[make_term(fields=["metadata.name In n1"])])
    await scene.attempt()
    first = (await lines_of(scene, "daemon"))[0]
    assert first == "default/daemon: waits, no node fits; pinned to n1, which is not there"


async def test_a_pod_that_was_not_tried_yet_begins_with_the_node_it_fits_on_and_who_is_ahead():
    scene = LiveScene()
    scene.node("n1", cpu="4")
    scene.pod("first", priority=9)
    scene.pod("second")
    first = (await lines_of(scene, "second"))[0]
    assert first == "default/second: waits to be tried, fits on n1 now; default/first is ahead"


async def test_a_pod_whose_bind_was_refused_begins_with_that_and_why():
    scene = LiveScene()
    scene.node("n1", cpu="4")
    scene.pod("web", cpu="1")
    (web,) = scene.queue.queued()
    message = 'running Bind plugin "DefaultBinder": status 403: Forbidden: no create of pods/binding'
    scene.scheduler.decisions.failed(web.pod_info, message, 0.001)
    first = (await lines_of(scene, "web"))[0]
    assert first == (
        "default/web: waits to be tried again, its bind was refused: status 403: Forbidden: no create of pods/binding"
    )


async def test_a_pod_whose_last_bind_failed_says_so_while_it_is_being_bound_again():
    """What hangs for ten seconds and is tried again after one is being bound nearly all the time."""
    scene = LiveScene()
    await scene.first_attempt("web", cpu="1")
    (web,) = scene.cache.assumed_pods()
    message = 'running Bind plugin "DefaultBinder": status 500: InternalError: failed calling webhook "w": deadline'
    scene.scheduler.decisions.failed(web, message, 0.001)
    first = (await lines_of(scene, "web"))[0]
    failed = 'status 500: InternalError: failed calling webhook "w": deadline'
    assert first == f"default/web: being bound to n1; its last bind failed: {failed}"


async def test_a_pod_that_no_single_change_helps_begins_with_what_most_nodes_have_against_it():
    scene = LiveScene()
    scene.node("n1")
    scene.node("n2")
    scene.node("n3", taints=["dedicated=gpu:NoSchedule"])
    scene.pod("p", requests={"example.com/fpga": 1})
    await scene.attempt()
    first = (await lines_of(scene, "p"))[0]
    assert first == (
        "default/p: waits, no node fits; no single change would help; 2 of 3 nodes: "
        "NodeResourcesFit: example.com/fpga, asked 1, of which these nodes have none (n1 and n2)"
    )


async def test_where_it_waits_says_since_when_how_often_it_was_tried_and_when_it_is_tried_again():
    scene = LiveScene()
    scene.node("n1", cpu="1")
    scene.pod("p", cpu="2")
    await scene.attempt()
    told = await scene.explain("p")
    shown = [*live_lines(msgspec.convert(told, ExplanationAnswer))]
    (waits,) = [line for line in shown if line.startswith("  waits: ")]
    assert waits == (
        f"  waits: unschedulable, priority 0, 1 attempt, since {told['queue']['waitingSince']}, "
        f"tried again at {told['queue']['nextRetry']} at the latest"
    )
    waking = {each["plugin"] for each in told["wokenBy"]}
    (woken,) = [line for line in shown if line.startswith("  woken by: ")]
    assert woken.endswith(f" (for {', '.join(waking)})")


def test_a_pod_that_is_tried_twice_with_the_same_outcome_is_told_once():
    attempts = [AttemptReport(None, None, [], text, 0) for text in ("no room", "no room", "still none")]
    answer = SimulationAnswer([PodReport("default", "p", "bayplan", attempts)], None)
    assert [*asked_lines(answer)] == ["default/p: no room", "default/p: still none"]
