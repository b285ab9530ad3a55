"""A shadow beside another scheduler: what it says of each of its decisions, and where pods are in both worlds."""

import logging
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import make_node, make_pod
from tests.cache_checks import assert_adds_up
from tests.recorded_metrics import RecordedMetrics

from bayplan.api.objects import Condition
from bayplan.cache.cache import Cache
from bayplan.config.connections import Extender
from bayplan.config.errors import ConfigurationError
from bayplan.config.load import default_configuration
from bayplan.framework.nominator import Nominator
from bayplan.plugins.registry import build_frameworks
from bayplan.scheduler.cycle import SchedulingCycle
from bayplan.scheduler.engines import Engine
from bayplan.scheduler.shadow import OUTCOMES, Shadow, ShadowNodes, World, shadow_configuration

THEIRS = "default-scheduler"
REFUSED = Condition(type="PodScheduled", status="False", reason="Unschedulable")


class Scene:
    """Nodes `a` and `b` of four cores, and a shadow of default-scheduler that packs."""

    def __init__(self, *, begins=True):
        self.now = 100.0
        self.nominator = Nominator()
        self.metrics = RecordedMetrics()
        configuration = shadow_configuration(default_configuration(), [THEIRS])
        self.shadow = Shadow(
            world(configuration, self.nominator),
            world(configuration, Nominator()),
            self.nominator,
            self.metrics,
            lambda: self.now,
        )
        self.nodes = ShadowNodes(self.shadow)
        self.pods = {}
        self.nodes.on_add(make_node("a"))
        self.nodes.on_add(make_node("b"))
        if begins:
            self.shadow.begin()

    def pod(self, name, node="", *, cpu="1", scheduler_name=THEIRS, **fields):
        pod = make_pod(name, node=node, cpu=cpu, scheduler_name=scheduler_name, uid=name, **fields)
        if name in self.pods:
            self.shadow.on_update(self.pods[name], pod)
        else:
            self.shadow.on_add(pod)
        self.pods[name] = pod

    def ends(self, name):
        self.shadow.on_delete(self.pods.pop(name))

    def said(self):
        return {outcome: count for outcome, count in self.shadow.decisions.items() if count}

    def where(self, name):
        """The node of a pod in the real world and in the shadow's."""
        return tuple(each.cache.node_of(name) for each in (self.shadow.real, self.shadow.shadow))

    def check(self):
        real, shadow = self.shadow.real.cache, self.shadow.shadow.cache
        assert_adds_up(real)
        assert_adds_up(shadow)
        assert real.sizes() == shadow.sizes()


def world(configuration, nominator):
    cache = Cache()
    frameworks = build_frameworks(configuration, cache.nodes, cache.listers, nominator)
    cycle = SchedulingCycle(cache.nodes, nominator, frameworks.values())
    return World(cache, Engine(frameworks, cycle, binder=None, queue=None))


@pytest.fixture
def scene():
    return Scene()


def test_the_node_that_we_would_have_chosen_is_the_same(scene):
    scene.pod("first", "a")
    assert scene.said() == {"tie": 1} or scene.said() == {"same": 1}
    scene.pod("second", "a")
    assert scene.said()["same"] >= 1
    assert "another" not in scene.said()


def test_a_node_with_an_equal_score_is_a_tie_and_one_with_a_lower_one_is_another(scene):
    scene.pod("first", "b")
    assert scene.said() == {"tie": 1}
    scene.pod("second", "a")
    assert scene.said() == {"tie": 1, "another": 1}


def test_each_choice_is_on_the_state_that_the_other_left_and_not_on_our_own(scene):
    scene.pod("first", "b")
    scene.pod("second", "b")
    assert scene.said() == {"tie": 1, "same": 1}
    assert scene.where("second") == ("b", "a")


def test_a_node_where_the_pod_does_not_fit_for_us_is_told(scene):
    scene.pod("small", "a")
    scene.pod("huge", "a", cpu="64")
    assert scene.said()["only_theirs"] == 1
    assert scene.where("huge") == ("a", "a")
    assert scene.shadow.returned == {"no_node": 1, "node_gone": 0}
    scene.check()


def test_a_pod_that_the_other_refused_is_compared_once(scene):
    for cpu, name in (("64", "huge"), ("2", "fits")):
        scene.pod(name, cpu=cpu)
        assert name not in scene.said()
        scene.pod(name, cpu=cpu, conditions=[REFUSED])
        scene.pod(name, cpu=cpu, conditions=[REFUSED], labels={"seen": "again"})
    assert scene.said() == {"neither": 1, "only_ours": 1}
    assert scene.where("fits") == (None, None)


def test_a_pod_that_waits_for_a_gate_was_not_refused(scene):
    scene.pod("gated", conditions=[Condition(type="PodScheduled", status="False", reason="SchedulingGated")])
    assert scene.said() == {}


def test_a_refused_pod_is_compared_again_when_it_is_bound_and_forgotten_when_it_ends(scene):
    scene.pod("waits", cpu="2", conditions=[REFUSED])
    scene.pod("waits", "a", cpu="2")
    assert scene.said() in ({"only_ours": 1, "same": 1}, {"only_ours": 1, "tie": 1})
    scene.pod("again", cpu="64", conditions=[REFUSED])
    scene.ends("again")
    scene.pod("again", cpu="64", conditions=[REFUSED])
    assert scene.said()["neither"] == 2


def test_the_node_that_a_pod_is_nominated_to_does_not_give_the_answer_away(scene):
    scene.pod("on-a", "a")
    scene.pod("slow", nominated="b")
    scene.pod("slow", "b", nominated="b")
    assert scene.said()["another"] == 1


def test_room_that_the_other_keeps_for_a_pod_is_kept_for_it_here(scene):
    scene.pod("important", cpu="4", priority=10, nominated="a")
    scene.pod("next", "b", cpu="2")
    assert scene.said() == {"same": 1}
    scene.pod("important", cpu="4", priority=10)
    assert scene.nominator.count() == 0
    scene.pod("important", cpu="4", priority=10, nominated="a")
    scene.ends("important")
    assert scene.nominator.count() == 0


def test_pods_live_where_we_would_have_put_them_until_they_end(scene):
    for name, node in (("first", "a"), ("second", "b"), ("third", "a")):
        scene.pod(name, node)
    assert scene.where("second") == ("b", "a")
    assert scene.shadow.nodes_in_use() == {"real": 2, "shadow": 1}
    scene.pod("second", "b", labels={"changed": "yes"})
    assert scene.where("second") == ("b", "a")
    scene.check()
    for name in ("first", "second", "third"):
        scene.ends(name)
    assert scene.shadow.nodes_in_use() == {"real": 0, "shadow": 0}


def test_nodes_in_use_count_for_the_time_between_two_measurements(scene):
    scene.pod("first", "a")
    scene.pod("second", "b")
    scene.now += 1800
    scene.shadow.measure()
    scene.ends("second")
    scene.now += 1800
    scene.shadow.measure()
    assert scene.shadow.node_seconds == {"real": 5400.0, "shadow": 3600.0}


def test_the_report_is_one_line_in_node_hours(scene, caplog):
    caplog.set_level(logging.INFO)
    scene.pod("first", "a")
    scene.pod("second", "b")
    scene.now += 3600
    scene.shadow.measure()
    scene.shadow.tell()
    line = caplog.messages[-1]
    assert line.startswith("what a shadow found hours=1.00 same=")
    assert "node_hours=2.00 shadow_node_hours=1.00 saved=50.0%" in line


def test_nothing_is_saved_where_nothing_ran(scene, caplog):
    caplog.set_level(logging.INFO)
    scene.shadow.tell()
    assert "node_hours=0.00 shadow_node_hours=0.00 saved=0.0%" in caplog.messages[-1]


def test_pods_that_run_at_the_start_are_where_they_are():
    scene = Scene(begins=False)
    scene.pod("first", "a")
    scene.pod("second", "b")
    scene.pod("waits", conditions=[REFUSED])
    scene.shadow.begin()
    assert scene.said() == {}
    assert scene.where("second") == ("b", "b")


@pytest.mark.parametrize("fields", [{"scheduler_name": "another"}, {"owner": "DaemonSet/agent"}])
def test_pods_of_others_and_of_daemon_sets_are_where_they_are(scene, fields):
    scene.pod("first", "a")
    before = scene.said()
    scene.pod("second", "b", **fields)
    assert (scene.said(), scene.where("second")) == (before, ("b", "b"))


def test_a_node_that_goes_takes_its_pods_back_to_where_they_are(scene):
    scene.pod("first", "a")
    scene.pod("second", "b")
    assert scene.where("second") == ("b", "a")
    scene.nodes.on_delete(make_node("a"))
    assert scene.where("second") == ("b", "b")
    assert scene.where("first") == ("a", "a")
    assert scene.shadow.returned == {"no_node": 0, "node_gone": 1}
    scene.check()
    scene.ends("first")
    scene.check()


def test_what_cannot_be_read_is_left_out_and_counted(scene, caplog):
    scene.pod("odd", "a", cpu="much")
    scene.nodes.on_add(make_node("odd", cpu="much"))
    assert scene.where("odd") == (None, None)
    assert not scene.shadow.real.cache.has_node("odd")
    assert not scene.shadow.shadow.cache.has_node("odd")
    counted = scene.metrics.undecodable_objects.values
    assert (counted["Pod",], counted["Node",]) == (1, 1)
    assert "default/odd" in caplog.text


def test_a_pod_that_breaks_a_plugin_is_where_it_is(scene, caplog):
    class Broken:
        def schedule(self, pod, framework):
            raise RuntimeError("broken")

    engine = scene.shadow.real.engine
    scene.shadow.real = World(scene.shadow.real.cache, Engine(engine.frameworks, Broken(), None, None))
    scene.pod("first", "b")
    assert scene.where("first") == ("b", "b")
    assert "a pod was not decided pod='default/first'" in caplog.text


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("pod"), st.integers(0, 7), st.sampled_from(["", "a", "b", "c"]), st.sampled_from(["1", "3"])),
        st.tuples(st.just("end"), st.integers(0, 7)),
        st.tuples(st.just("node"), st.sampled_from("abc")),
        st.tuples(st.just("gone"), st.sampled_from("abc")),
    ),
    max_size=40,
)


@given(EVENTS)
def test_both_worlds_run_the_same_pods_whatever_happens(events):
    scene = Scene()
    bound = {}
    for kind, *what in events:
        if kind == "pod":
            index, node, cpu = what
            # A pod that has a node keeps it, and its size.
            node, cpu = bound.get(index, (node, cpu))
            if node:
                bound[index] = node, cpu
            scene.pod(f"p{index}", node, cpu=cpu)
        elif kind == "end" and f"p{what[0]}" in scene.pods:
            bound.pop(what[0], None)
            scene.ends(f"p{what[0]}")
        elif kind == "node":
            scene.nodes.on_update(make_node(what[0]), make_node(what[0]))
        elif kind == "gone":
            scene.nodes.on_delete(make_node(what[0]))
        scene.check()
    for index, (node, _) in bound.items():
        assert scene.where(f"p{index}")[0] == node
    assert sum(scene.shadow.decisions[each] for each in OUTCOMES[:4]) >= len(bound) - scene.shadow.returned["no_node"]


def test_pods_of_a_scheduler_are_decided_by_the_profile_of_its_name_or_by_the_first():
    first = default_configuration().profiles[0]
    second = replace(first, scheduler_name="two", percentage_of_nodes_to_score=7)
    made = shadow_configuration(replace(default_configuration(), profiles=(first, second)), ["two", "three"])
    profiles = [(each.scheduler_name, each.percentage_of_nodes_to_score) for each in made.profiles]
    assert profiles == [("two", 7), ("three", None)]
    frameworks = build_frameworks(made, Cache().nodes)
    assert [[*each.post_filters] for each in frameworks.values()] == [[], []]


def test_it_contends_for_no_lease_whatever_the_file_says():
    given = default_configuration()
    given = replace(given, leader_election=replace(given.leader_election, leader_elect=True))
    assert shadow_configuration(given, [THEIRS]).leader_election.leader_elect is False


def test_extenders_are_refused():
    given = replace(default_configuration(), extenders=(Extender(url_prefix="http://127.0.0.1:1"),))
    with pytest.raises(ConfigurationError) as refused:
        shadow_configuration(given, [THEIRS])
    assert "extenders: Forbidden: a shadow asks none" in str(refused.value)
