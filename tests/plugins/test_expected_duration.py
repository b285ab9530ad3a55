from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from tests.builders import make_node, make_pod
from tests.config.configurations import V1, load
from tests.plugins.scenes import Scene, sign
from tests.reference.scores import expected_duration

from bayplan.api.meta_objects import Annotations
from bayplan.cache.pod_info import PodInfo
from bayplan.config.bayplan_args import ExpectedDurationArgs
from bayplan.framework.interface import CycleState
from bayplan.plugins.expected_duration import KEPT_BYTES, ExpectedDuration, PodDurations
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.simulator import Simulator


def hinted(name="p", said=None, **fields):
    """A pod whose annotation says so."""
    pod = make_pod(name, **fields)
    if said is None:
        return pod
    return structs.replace(pod, metadata=structs.replace(pod.metadata, annotations=Annotations(str(said))))


class Cluster(Scene):
    """A scene whose clock the test moves."""

    def __init__(self, *objects, label=""):
        super().__init__(*objects)
        self.now = 1000.0
        self.plugin = ExpectedDuration(ExpectedDurationArgs(label), self.cache.nodes, lambda: self.now)

    def given(self, pod):
        """The final score of every node."""
        table, rows, state = self.cache.nodes, self.cache.nodes.rows(), CycleState()
        raw = self.plugin.score(state, PodInfo(pod), table, rows)
        scores = self.plugin.normalize_score(state, PodInfo(pod), table, rows, raw)
        assert scores.dtype == np.int64
        return dict(zip([table.names[row] for row in rows.tolist()], scores.tolist(), strict=True))

    def end(self, name):
        """Have a pod end, and the plugin hear of it."""
        (uid,) = [uid for pods in self.cache.nodes.pods for uid, pod in pods.items() if pod.name == name]
        self.cache.remove_pod(uid)
        self.plugin.release_unused()


NODES = [make_node(name) for name in ("a", "b", "c")]


def test_a_pod_goes_where_it_ends_with_the_last_one_and_an_empty_node_is_last():
    cluster = Cluster(*NODES, hinted("long", 4000, node="a"), hinted("short", 1000, node="b"))
    assert cluster.given(hinted(said=1000)) == {"a": 62, "b": 100, "c": 0}
    assert cluster.given(hinted(said=4000)) == {"a": 100, "b": 12, "c": 0}


def test_what_is_left_counts_and_not_how_long_pods_run_in_all():
    cluster = Cluster(*NODES[:1], hinted("long", 4000, node="a"))
    assert cluster.given(hinted(said=1000)) == {"a": 62}
    cluster.now += 3000
    assert cluster.given(hinted(said=1000)) == {"a": 100}


def test_an_overdue_node_is_expected_to_run_on_as_long_as_it_is_overdue():
    cluster = Cluster(*NODES[:1], hinted("short", 100, node="a"))
    cluster.given(hinted())
    cluster.now += 300
    assert cluster.given(hinted(said=200)) == {"a": 100}
    assert cluster.given(hinted(said=400)) == {"a": 25}


def test_pods_of_unknown_duration_stand_together():
    cluster = Cluster(*NODES, make_pod("service", node="a"), hinted("job", 1000, node="b"))
    assert cluster.given(make_pod("p")) == {"a": 100, "b": 0, "c": 0}
    assert cluster.given(hinted(said=1000)) == {"a": 50, "b": 100, "c": 0}


def test_pods_of_daemon_sets_leave_a_node_empty():
    cluster = Cluster(*NODES[:1], hinted("daemon", 1000, node="a", owner="DaemonSet/d"))
    assert cluster.given(hinted(said=1000)) == {"a": 0}


def test_the_start_that_the_kubelet_tells_counts():
    pod = hinted("job", 1000, node="a")
    started = structs.replace(pod, status=structs.replace(pod.status, start_time="1970-01-01T00:10:00Z"))
    assert Cluster(*NODES[:1], started).given(hinted(said=600)) == {"a": 100}


@pytest.mark.parametrize(("said", "seconds"), [("90m", 5400), ("5400", 5400), ("1h30m", 5400), ("1.2s", 2)])
def test_an_annotation_is_a_go_duration_or_a_number_of_seconds(said, seconds):
    assert PodDurations("").of(PodInfo(hinted(said=said))) == seconds


@pytest.mark.parametrize("said", ["", "soon", "-5m", "0", "1d", "9" * 40, "1e3", "\x00", "9999999h", "٣"])
def test_any_other_annotation_is_ignored_and_told(said):
    durations, pod = PodDurations(""), PodInfo(hinted(said=said))
    assert durations.of(pod) is None
    assert "is ignored: it is no duration such as 90m, or 5400; not known how long it runs" in durations.note(pod)


@pytest.mark.parametrize(
    ("owner", "other"),
    [
        ("ReplicaSet/web-5d4f8c7b96", "ReplicaSet/web-7c9d8f6b54"),
        ("Job/backup-28391040", "Job/backup-28391100"),
        ("StatefulSet/db", "StatefulSet/db"),
    ],
)
def test_the_next_pod_of_an_owner_is_expected_to_run_as_long_as_the_last_ones(owner, other):
    cluster = Cluster(*NODES[:2], make_pod("first", node="a", owner=owner), hinted("last", 600, node="b"))
    cluster.given(make_pod("p"))
    cluster.now += 600
    cluster.end("first")
    cluster.add(hinted("again", 600, node="b"))
    assert cluster.given(make_pod("second", owner=other))["b"] == 100
    assert "expected to run 600 s, the mean of 1 of" in cluster.plugin.score_note(PodInfo(make_pod(owner=other)))
    assert cluster.plugin.score_note(PodInfo(make_pod(owner="Job/else"))) == "not known how long it runs"


def test_a_label_may_say_which_pods_are_alike():
    cluster = Cluster(*NODES[:1], make_pod("first", node="a", labels={"job": "lint"}), label="job")
    cluster.given(make_pod("p"))
    cluster.now += 300
    cluster.end("first")
    assert "expected to run 300 s" in cluster.plugin.score_note(PodInfo(make_pod(labels={"job": "lint"})))


def test_what_was_deleted_or_never_started_teaches_nothing():
    killed = make_pod("killed", node="a", owner="Job/j", deleting=True)
    cluster = Cluster(*NODES[:1], killed, make_pod("unbound", node="a", owner="Job/k"))
    cluster.given(make_pod("p"))
    cluster.now += 59
    cluster.end("unbound")
    cluster.now += 600
    cluster.end("killed")
    for owner in ("Job/j", "Job/k"):
        assert cluster.plugin.score_note(PodInfo(make_pod(owner=owner))) == "not known how long it runs"


def test_neither_a_resize_nor_the_loss_of_a_node_is_an_end():
    resized = make_pod("db", node="a", uid="db", owner="StatefulSet/db", cpu=1)
    cluster = Cluster(*NODES[:2], resized, make_pod("web", node="b", owner="ReplicaSet/web"))
    cluster.given(make_pod("p"))
    cluster.now += 600
    cluster.add(make_pod("db", node="a", uid="db", owner="StatefulSet/db", cpu=2))
    cluster.cache.remove_node("b")
    cluster.given(make_pod("p"))
    cluster.add(NODES[1])
    cluster.cache.remove_node("b")
    cluster.add(NODES[1])
    cluster.given(make_pod("p"))
    for owner in ("StatefulSet/db", "ReplicaSet/web"):
        assert cluster.plugin.score_note(PodInfo(make_pod(owner=owner))) == "not known how long it runs"
    cluster.now += 400
    cluster.end("db")
    assert "expected to run 1000 s" in cluster.plugin.score_note(PodInfo(make_pod(owner="StatefulSet/db")))


def test_a_bind_that_fails_late_is_no_end():
    cluster = Cluster(*NODES[:1])
    cluster.given(make_pod("p"))
    assumed = PodInfo(make_pod("unbound", uid="unbound", owner="Job/j"))
    cluster.cache.assume_pod(assumed, "a")
    cluster.given(make_pod("p"))
    cluster.now += 600
    cluster.cache.forget_pod("unbound")
    cluster.given(make_pod("p"))
    assert cluster.plugin.score_note(assumed) == "not known how long it runs"


def test_a_resize_of_a_pod_of_more_than_a_megabyte_is_no_end():
    labels = {"large": "x" * 2**20}
    cluster = Cluster(*NODES[:1])
    cluster.given(make_pod("p"))
    for cpu in (1, 2):
        cluster.add(make_pod("db", node="a", uid="db", owner="StatefulSet/db", labels=labels, cpu=cpu))
        cluster.given(make_pod("p"))
        cluster.now += 600
    assert cluster.plugin.score_note(PodInfo(make_pod(owner="StatefulSet/db"))) == "not known how long it runs"


def test_the_mean_of_short_runs_lies_between_them():
    durations, pod = PodDurations(""), PodInfo(make_pod(owner="Job/j"))
    for _ in range(200):
        durations.learn(pod, 5)
        durations.learn(pod, 15)
    assert 9 <= durations.of(pod) <= 11


def test_what_is_learnt_is_bounded_in_bytes():
    durations = PodDurations("")
    for number in range(6000):
        durations.learn(PodInfo(make_pod(owner=f"Job/of-{number:x}-{'x' * (number % 200)}")), 60)
    assert KEPT_BYTES // 2 < durations.nbytes <= KEPT_BYTES


def test_hints_do_not_tell_pods_apart_that_are_alike():
    plugin = Cluster().plugin
    assert sign(plugin, cpu="1") == sign(plugin, cpu="2") == ()


SAID = st.one_of(st.none(), st.integers(1, 50), st.just("bad"))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("come"), st.sampled_from("abc"), SAID),
        st.tuples(st.just("end"), st.integers(0, 9), st.none()),
        st.tuples(st.just("wait"), st.integers(0, 40), st.none()),
    ),
    max_size=25,
)


@given(STEPS, SAID)
def test_it_says_what_the_reference_says(steps, said):
    cluster, names, running = Cluster(*NODES), count(), {}
    for what, value, extra in steps:
        if what == "wait":
            cluster.now += value
        elif what == "come":
            name = f"pod-{next(names)}"
            running[name] = (value, cluster.now, extra if isinstance(extra, int) else None)
            cluster.add(hinted(name, extra, node=value))
        elif running:
            name = sorted(running)[value % len(running)]
            del running[name]
            cluster.end(name)
        found = cluster.given(hinted("new", said))
        expected = said if isinstance(said, int) else None
        for name in "abc":
            spans = [(start, lasts) for node, start, lasts in running.values() if node == name]
            assert found[name] == expected_duration(spans, expected, cluster.now)


def test_pods_that_end_together_are_placed_together_when_it_is_enabled(tmp_path):
    profile = {
        "schedulerName": "bayplan",
        "plugins": {"score": {"enabled": [{"name": "ExpectedDuration", "weight": 10}]}},
        "pluginConfig": [{"name": "ExpectedDuration", "args": {"ownerLabel": "job"}}],
    }
    simulator = Simulator(load(tmp_path, V1 | {"profiles": [profile]}))
    pods = [hinted("long", "2h", node="a"), hinted("short", "10m", node="b")]
    waiting = [hinted("new-short", "10m"), hinted("new-long", "2h")]
    simulator.add(ClusterObjects(nodes=NODES, pods=[PodInfo(each) for each in (*pods, *waiting)]))
    assert {pod.name: pod.attempts[-1].node for pod in simulator.run().pods} == {"new-short": "b", "new-long": "a"}


def test_sums_stay_in_range_for_any_clock():
    cluster = Cluster(*NODES[:1], hinted("job", 10**9, node="a"))
    cluster.given(make_pod("p"))
    cluster.now = 2.0**40
    assert 0 <= cluster.given(hinted(said=1))["a"] <= 100
