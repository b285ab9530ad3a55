"""What a whole attempt reports of its extension points and plugins."""

from collections import Counter
from itertools import count

import pytest
from tests.builders import make_node, make_pod_info

from bayplan.cache.cache import Cache
from bayplan.config.load import default_configuration
from bayplan.framework.cluster_event import NODE_ADD
from bayplan.framework.nominator import Nominator
from bayplan.plugins.registry import build_frameworks
from bayplan.queue.queue_settings import queue_settings
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.scheduler.attempt import AttemptRunner, Failed, Reserved
from bayplan.scheduler.cycle import SchedulingCycle
from bayplan.server.metrics import SchedulerMetrics

POINT = "scheduler_framework_extension_point_duration_seconds_count"
PLUGIN = "scheduler_plugin_execution_duration_seconds_count"
EVALUATIONS = "scheduler_plugin_evaluation_total"


class Scene:
    """Attempts on four nodes with the metrics of a running scheduler."""

    def __init__(self):
        self.metrics = SchedulerMetrics(profiles=["bayplan"])
        cache, nominator = Cache(), Nominator()
        for index in range(4):
            cache.set_node(make_node(f"n{index}", cpu="4", memory="16Gi"))
        frameworks = build_frameworks(
            default_configuration(), cache.nodes, cache.listers, nominator, metrics=self.metrics
        )
        (self.framework,) = frameworks.values()
        settings = queue_settings(frameworks)
        self.queue = SchedulingQueue(clock=lambda: 0.0, settings=settings, nominator=nominator, metrics=self.metrics)
        cycle = SchedulingCycle(cache.nodes, nominator, frameworks.values())
        self.runner = AttemptRunner(cache, self.queue, cycle, frameworks, lambda: 0.0, self.metrics)

    def attempt(self, name, **fields):
        self.queue.add(make_pod_info(name, **fields))
        return self.runner.run()

    def counts(self, sample, by):
        """The values of a sample by one of its labels, added up."""
        found = Counter()
        for family in self.metrics.registry.collect():
            for each in family.samples:
                if each.name == sample:
                    found[each.labels[by]] += int(each.value)
        return found


def test_every_extension_point_that_was_run_is_reported_once():
    scene = Scene()
    assert isinstance(scene.attempt("a", cpu="1"), Reserved)
    points = scene.counts(POINT, "extension_point")
    assert points == dict.fromkeys(
        ("PreEnqueue", "PreFilter", "Filter", "PreScore", "Score", "Reserve", "PreBindPreFlight"), 1
    )


def test_alike_pods_are_filtered_and_scored_once_each():
    scene = Scene()
    for name in "abc":
        scene.attempt(name, cpu="1")
    points = scene.counts(POINT, "extension_point")
    assert (points["Filter"], points["Score"]) == (3, 3)
    assert points["PreFilter"] <= 3


def test_a_rejected_pod_reports_post_filter_and_no_score():
    scene = Scene()
    assert isinstance(scene.attempt("a", cpu="100"), Failed)
    points = scene.counts(POINT, "extension_point")
    assert (points["PostFilter"], points["Score"], points["Reserve"]) == (1, 0, 0)
    assert scene.counts("scheduler_preemption_evaluation_duration_seconds_count", "result") == {"Unschedulable": 1}


def test_plugins_are_measured_in_a_sampled_attempt_and_in_no_other():
    scene = Scene()
    scene.attempt("a", cpu="1")
    first = scene.counts(PLUGIN, "extension_point")
    assert {"PreFilter", "Filter", "PreScore", "Score", "Reserve", "PreBindPreFlight"} <= first.keys()
    assert scene.counts(PLUGIN, "plugin")["NodeResourcesFit"] >= 3
    for number in range(60):
        before = scene.counts(PLUGIN, "extension_point")["Reserve"]
        scene.attempt(f"p{number}", cpu="1m")
        assert (scene.counts(PLUGIN, "extension_point")["Reserve"] > before) == scene.framework.calls.sampled


def test_few_changed_nodes_are_measured_as_well_as_many():
    scene = Scene()
    scene.attempt("a", cpu="1m")
    before = scene.counts(PLUGIN, "plugin")["NodeResourcesFit"]
    names = (f"again-{number}" for number in count())
    scene.attempt(next(names), cpu="1m")
    while not scene.framework.calls.sampled:
        scene.attempt(next(names), cpu="1m")
    assert scene.counts(PLUGIN, "plugin")["NodeResourcesFit"] > before


def test_evaluations_count_attempts_before_nodes_and_nodes_where_they_are_looked_at():
    scene = Scene()
    for name in "ab":
        scene.attempt(name, cpu="1")
    by_point = {
        (each.labels["extension_point"], each.labels["plugin"]): each.value
        for family in scene.metrics.registry.collect()
        for each in family.samples
        if each.name == EVALUATIONS
    }
    assert by_point["PreFilter", "NodeResourcesFit"] == 2
    assert ("PreFilter", "PodTopologySpread") not in by_point
    # All four for the first pod, and the one that it went to for the second.
    assert by_point["Filter", "NodeResourcesFit"] == 5
    assert by_point["Score", "NodeResourcesFit"] == 5


@pytest.mark.parametrize("answer", [True, False])
def test_hints_are_measured_for_an_event_of_ten(answer):
    scene = Scene()
    scene.attempt("waits", cpu="100")
    node = make_node("new", cpu="200" if answer else "1")
    scene.queue.move_all(NODE_ADD, None, node)
    hints = scene.counts("scheduler_queueing_hint_execution_duration_seconds_count", "hint")
    assert hints == {"Queue" if answer else "QueueSkip": 1}
