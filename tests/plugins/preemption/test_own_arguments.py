import json

import pytest
from tests.builders import make_node
from tests.plugins.preemption.worlds import NOW, World, high, low, make_budget, minute

from bayplan.cache.pod_info import PodInfo
from bayplan.config.errors import ConfigurationError
from bayplan.config.load import load_configuration


def preempting_with(tmp_path, **own):
    file = tmp_path / "config.yaml"
    file.write_text(
        json.dumps(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "profiles": [
                    {
                        "schedulerName": "bayplan",
                        "pluginConfig": [{"name": "DefaultPreemption", "args": {"bayplan.io": own}}],
                    }
                ],
            }
        )
    )
    return load_configuration(file)


def test_strict_budgets_are_never_violated(tmp_path):
    objects = [make_node("n1", cpu="4"), low("a", labels={"app": "a"}), make_budget(app="a")]
    assert World(*objects).preempt(high()) == ("n1", ["a"])
    strict = World(*objects, configuration=preempting_with(tmp_path, pdbPolicy="Strict"))
    assert strict.post_filter_message(high()) == (
        "preemption: 0/1 nodes are available: 1 node(s) where no victims can be found without violating a "
        "PodDisruptionBudget."
    )
    # A budget that changes wakes nobody.
    assert strict.schedule(high()).post_filter.retry_after == 10
    strict.add(make_node("n2", cpu="4"), low("b", "n2", priority=9))
    outcome = strict.schedule(high())
    assert (outcome.post_filter.nominated_node_name, outcome.post_filter.victims[0].name) == ("n2", "b")
    assert outcome.post_filter.evicts
    assert not World(*objects).schedule(high()).post_filter.evicts


@pytest.mark.parametrize("labels", [{"app": "a"}, None], ids=["labels", "no labels"])
def test_a_strict_budget_with_an_empty_selector_covers_every_pod_as_for_the_eviction_api(tmp_path, labels):
    objects = [make_node("n1", cpu="4"), low("a", labels=labels), make_budget()]
    assert World(*objects).schedule(high()).post_filter.candidates[0].pdb_violations == 0, (
        "it covers none for kube-scheduler"
    )
    strict = World(*objects, configuration=preempting_with(tmp_path, pdbPolicy="Strict"))
    assert "without violating a PodDisruptionBudget" in strict.post_filter_message(high())


def test_a_pod_of_two_budgets_is_no_strict_victim_as_the_eviction_api_takes_none(tmp_path):
    objects = [
        make_node("n1", cpu="4"),
        low("a", labels={"app": "a", "tier": "b"}),
        make_budget("one", app="a", allowed=5),
        make_budget("two", tier="b", allowed=5),
    ]
    assert World(*objects).preempt(high()) == ("n1", ["a"]), "kube-scheduler deletes it"
    strict = World(*objects, configuration=preempting_with(tmp_path, pdbPolicy="Strict"))
    assert strict.post_filter_message(high()) == (
        "preemption: 0/1 nodes are available: 1 node(s) where a victim has more than one PodDisruptionBudget, "
        "which the Eviction API refuses."
    )
    assert strict.schedule(high()).post_filter.retry_after == 10
    # Of two that would do the other ends, although it is of a higher priority.
    strict.add(make_node("n2", cpu="6"), low("b", "n2", cpu="3", labels={"app": "a", "tier": "b"}))
    strict.add(low("c", "n2", cpu="3", priority=3))
    assert strict.preempt(high()) == ("n2", ["c"])


def test_strict_budgets_count_the_pods_that_are_evicted_and_no_others(tmp_path):
    objects = [
        make_node("n1", cpu="4"),
        low("important", cpu="1", priority=5, labels={"app": "a"}),
        low("large", cpu="3", labels={"app": "a"}),
        make_budget(app="a", allowed=1),
    ]
    assert World(*objects).schedule(high()).post_filter.candidates[0].pdb_violations == 1
    strict = World(*objects, configuration=preempting_with(tmp_path, pdbPolicy="Strict"))
    (candidate,) = strict.schedule(high()).post_filter.candidates
    assert ([victim.name for victim in candidate.victims], candidate.pdb_violations) == (["large"], 0)


def test_pods_are_spared_until_they_have_run_long_enough(tmp_path):
    configuration = preempting_with(tmp_path, minimumRuntimeSeconds=60)
    world = World(
        make_node("n1", cpu="4"), low("a", start_time=minute(1)), low("b", cpu="1"), configuration=configuration
    )
    world.now = NOW - 86_400 + 119
    pod = PodInfo(high(cpu="2"))
    assert world.preempt(pod) == ("", [])
    assert world.schedule(pod).post_filter.retry_after == 1
    world.now += 1
    assert world.preempt(pod) == ("n1", ["a"])


def test_a_young_pod_is_no_reason_to_try_again_where_evictions_do_not_help(tmp_path):
    configuration = preempting_with(tmp_path, minimumRuntimeSeconds=60)
    world = World(make_node("n1", cpu="4"), low("a", start_time=minute(1)), configuration=configuration)
    world.now = NOW - 86_400 + 119
    assert world.schedule(high()).post_filter.retry_after == 1
    world.add(make_node("n1", cpu="2"))
    assert world.schedule(high()).post_filter.retry_after is None


def test_preemption_waits_for_an_autoscaler_if_told_to(tmp_path):
    configuration = preempting_with(tmp_path, preemptionDelaySeconds=30)
    world = World(make_node("n1", cpu="4"), low("a"), configuration=configuration)
    world.now = NOW - 86_400 + 29
    pod = PodInfo(high())
    assert world.schedule(pod).post_filter.nominated_node_name is None
    assert world.schedule(pod).post_filter.retry_after == 1
    assert world.post_filter_message(pod) == (
        "preemption: not eligible before preemptionDelaySeconds=30 have passed since the pod was created."
    )
    world.now += 1
    assert world.preempt(pod) == ("n1", ["a"])


def test_a_clock_that_is_behind_does_not_lengthen_the_delay(tmp_path):
    world = World(
        make_node("n1", cpu="4"), low("a"), configuration=preempting_with(tmp_path, preemptionDelaySeconds=30)
    )
    world.now = 0
    assert world.schedule(high()).post_filter.retry_after == 30


def test_by_default_a_pod_waits_for_events_alone():
    world = World(make_node("n1", cpu="4"), low("a", cpu="4", priority=99), make_budget(app="a"))
    assert world.schedule(high()).post_filter.retry_after is None


@pytest.mark.parametrize(
    ("own", "complaint"),
    [
        ({"pdbPolicy": "Maybe"}, "pdbPolicy"),
        ({"minimumRuntimeSeconds": -1}, "minimumRuntimeSeconds: Invalid value: -1: not in valid range"),
        ({"preemptionDelaySeconds": -1}, "preemptionDelaySeconds: Invalid value: -1: not in valid range"),
        ({"delay": 1}, "unknown field"),
    ],
)
def test_wrong_arguments_are_named(tmp_path, own, complaint):
    with pytest.raises(ConfigurationError, match=complaint):
        preempting_with(tmp_path, **own)
