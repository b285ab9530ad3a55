"""Who hears of a decision: when, what it costs if that fails, and that nothing of it stays."""

import gc
from weakref import ref

from tests.scheduler.test_measures import Scene

from bayplan.scheduler.attempt import Failed, Reserved


def deciding(decided):
    scene = Scene()
    scene.runner.decided = decided
    return scene


def test_a_decision_is_heard_of_before_its_pod_is_assumed():
    heard = []
    scene = deciding(lambda made: heard.append((made.pod.name, made.outcome, scene.runner.cache.node_of("a"))))
    reserved = scene.attempt("a", uid="a", cpu="1")
    assert heard == [("a", reserved.placement, None)]
    assert scene.runner.cache.node_of("a") == reserved.placement.node_name


def test_a_rejection_is_heard_of_before_the_pod_is_back_in_the_queue():
    heard = []
    scene = deciding(lambda made: heard.append((made.outcome, made.row, scene.queue.get("a").sub_queue)))
    failed = scene.attempt("a", uid="a", cpu="99")
    assert heard == [(failed.fit_error, -1, None)]


def test_what_raises_in_scores_asked_for_there_fails_the_attempt_and_the_pods_after_it_are_evaluated_anew():
    evaluations = []

    def fail(*_):
        raise RuntimeError("no reader of it")

    def decided(made):
        evaluations.append(made.evaluation)
        if made.pod.name == "b":
            made.evaluation.scored.each = fail
            made.evaluation.scores(made.pod, made.found)

    scene = deciding(decided)
    attempts = [scene.attempt(name, cpu="1") for name in "abc"]
    assert [type(each) for each in attempts] == [Reserved, Failed, Reserved]
    assert (attempts[1].message, attempts[1].error) == ("no reader of it", True)
    assert evaluations[0] is evaluations[1]
    assert evaluations[1] is not evaluations[2]


def test_a_reserved_pod_keeps_no_evaluation_in_memory():
    found = []
    scene = deciding(lambda made: found.append(ref(made.evaluation)))
    reserved = scene.attempt("a", cpu="1")
    gc.disable()
    try:
        found[0]().is_whole = False
        scene.attempt("like-it", cpu="1")
        assert reserved.placement.node_name
        assert found[0]() is None
    finally:
        gc.enable()
