import msgspec
import pytest
from tests.builders import make_node, make_pod
from tests.scheduler.scene import Scene

from bayplan.metrics.table import KUBELET_REASONS
from bayplan.scheduler.event_handlers import AssignedPodEvents, NodeEvents
from bayplan.scheduler.kubelet_rejections import REMEMBERED_PODS, FailedPod, KubeletRejections, NodeBackoff, reason_of

NO_ROOM = "Pod was rejected: Node didn't have enough resource: cpu, requested: 1000, used: 4000, capacity: 4000"


def failed(name="web", *, node="n1", reason="OutOfcpu", message=NO_ROOM, scheduler="bayplan"):
    document = {
        "metadata": {"name": name, "namespace": "default", "uid": name, "resourceVersion": "9"},
        "spec": {"nodeName": node, "schedulerName": scheduler},
        "status": {"phase": "Failed", "reason": reason, "message": message},
    }
    return msgspec.convert(document, FailedPod)


class Rejecting(Scene):
    """A scheduler that leaves nodes alone for a minute; `later` is what it put off."""

    def __init__(self):
        super().__init__()
        self.later = []
        self.backoff = NodeBackoff(60.0, self.cache, self.queue, lambda *call: self.later.append(call))
        self.nodes = NodeEvents(self.cache, self.queue, self.metrics, self.backoff)
        self.assigned = AssignedPodEvents(self.cache, self.queue, self.metrics, lambda uid: None, self.backoff)
        self.rejections = KubeletRejections({"bayplan"}, self.metrics, self.backoff)
        self.rejections.on_synced()
        for name in ("n1", "n2"):
            self.nodes.on_add(make_node(name))

    def place(self, name):
        """Decide on a pod; returns its node, "" without one."""
        self.pending.changed(make_pod(name, uid=name, cpu="1"))
        self.scheduler.schedule_one()
        return self.cache.node_of(name) or ""

    def bind(self, name):
        """Place a pod and have the watch show it there."""
        node = self.place(name)
        self.assigned.on_add(make_pod(name, uid=name, cpu="1", node=node))
        return node

    def reject(self, name, node):
        """Have a kubelet refuse a pod: it leaves the pods on nodes and is among those that failed."""
        self.assigned.on_delete(make_pod(name, uid=name, cpu="1", node=node))
        self.rejections.on_add(failed(name, node=node))

    def pass_time(self):
        calls, self.later = self.later, []
        for _, callback in calls:
            callback()


@pytest.fixture
def scene():
    return Rejecting()


def test_a_rejected_pod_is_counted_and_logged_with_its_node(scene, caplog):
    scene.rejections.on_add(failed())
    assert scene.metrics.rejections == ["OutOfcpu"]
    assert "kubelet rejected a pod node='n1' pod='default/web' reason='OutOfcpu' message=\"Node didn't" in caplog.text


@pytest.mark.parametrize(
    "pod",
    [
        failed(scheduler="default-scheduler"),
        failed(reason="", message=""),
        failed(reason="Evicted", message="The node was low on resource: memory."),
    ],
    ids=["of another scheduler", "that failed by itself", "evicted while it ran"],
)
def test_a_failed_pod_is_not_counted(scene, pod):
    scene.rejections.on_add(pod)
    assert scene.metrics.rejections == []


def test_pods_that_had_failed_before_the_start_are_not_told_of(scene):
    rejections = KubeletRejections({"bayplan"}, scene.metrics)
    rejections.on_add(failed())
    rejections.on_synced()
    rejections.on_update(failed(), failed())
    assert scene.metrics.rejections == []
    rejections.on_update(failed(message=""), failed())
    assert scene.metrics.rejections == ["OutOfcpu"]


@pytest.mark.parametrize(
    ("reason", "counted_as"),
    [
        ("OutOfpods", "OutOfpods"),
        ("OutOfnvidia.com/gpu", "OutOfExtendedResources"),
        ("<script>", "Other"),
        ("", "Other"),
    ],
)
def test_reasons_that_anybody_could_make_up_share_one_label(reason, counted_as):
    assert reason_of(reason) == counted_as
    assert counted_as in KUBELET_REASONS


def test_the_log_line_is_bounded_whatever_the_pod_says(scene, caplog):
    scene.rejections.on_add(failed(node="n" * 10**6, reason="r\n" * 10**6, message=NO_ROOM + "x" * 10**6))
    assert len(caplog.text) < 2000
    assert caplog.text.count("\n") == 1


def test_without_a_back_off_the_node_is_as_good_as_before(scene):
    rejections = KubeletRejections({"bayplan"}, scene.metrics)
    rejections.on_synced()
    node = scene.bind("web-1")
    scene.assigned.on_delete(make_pod("web-1", uid="web-1", cpu="1", node=node))
    rejections.on_add(failed("web-1", node=node))
    assert scene.bind("web-2") == node


def test_a_replacement_goes_to_another_node_until_the_back_off_is_over(scene):
    node = scene.bind("web-1")
    scene.reject("web-1", node)
    assert {scene.bind("web-2"), node} == {"n1", "n2"}
    assert [seconds for seconds, _ in scene.later] == [60.0]


def test_a_pod_that_finds_no_other_node_is_woken_when_it_is_over(scene):
    for name in ("web-1", "web-2"):
        scene.reject(name, scene.bind(name))
    assert scene.place("web-3") == ""
    scene.pass_time()
    scene.now += 100.0
    scene.queue.flush(scene.now)
    scene.scheduler.schedule_one()
    assert scene.cache.node_of("web-3") in {"n1", "n2"}


def test_a_node_that_rejects_again_meanwhile_waits_for_the_last_one(scene):
    scene.bind("a")
    scene.place("b")
    node = scene.cache.node_of("a")
    scene.backoff.bound("b")
    for name in ("a", "b"):
        scene.reject(name, node)
    scene.later.pop()[1]()
    assert scene.bind("c") != node
    scene.pass_time()
    assert scene.bind("d") in {"n1", "n2"}


def test_a_node_that_changes_or_comes_again_keeps_its_back_off_and_then_has_none(scene):
    node = scene.bind("web-1")
    scene.reject("web-1", node)
    old, new = make_node(node), make_node(node, labels={"a": "b"})
    scene.nodes.on_update(old, new)
    assert scene.bind("web-2") != node
    scene.nodes.on_delete(new)
    scene.nodes.on_add(old)
    assert scene.bind("web-3") != node
    scene.nodes.on_delete(old)
    scene.pass_time()
    scene.nodes.on_add(old)
    assert scene.cache.nodes.nodes[scene.cache.nodes.row(node)] == old


def test_a_pod_that_somebody_put_there_by_hand_keeps_nobody_from_the_node(scene):
    scene.assigned.on_add(make_pod("by-hand", uid="by-hand", cpu="1", node="n1"))
    scene.reject("by-hand", "n1")
    assert scene.metrics.rejections == ["OutOfcpu"]
    assert scene.later == []


def test_a_pod_whose_own_wishes_the_node_cannot_grant_keeps_nobody_from_it(scene):
    node = scene.bind("web-1")
    scene.rejections.on_add(failed("web-1", node=node, reason="SysctlForbidden"))
    assert scene.later == []


def test_a_rejection_counts_although_its_bind_was_not_seen_yet(scene):
    node = scene.place("fast")
    scene.rejections.on_add(failed("fast", node=node))
    assert len(scene.later) == 1


def test_what_is_remembered_of_bound_pods_has_a_bound(scene, allocated):
    before = allocated()
    for serial in range(2 * REMEMBERED_PODS):
        scene.backoff.bound(f"{serial:036}")
    assert allocated() - before < 4 * 2**20
