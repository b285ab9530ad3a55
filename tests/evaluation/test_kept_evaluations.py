"""What kept evaluations take is counted in bytes, and bounded by them."""

import gc
import tracemalloc
from weakref import ref

import pytest
from tests.builders import make_node, make_pod_info, make_term
from tests.plugins.inter_pod_affinity.affinity_scenes import required, term
from tests.plugins.preemption.worlds import World
from tests.plugins.scenes import spread

from bayplan.cache.node_table import NodeTable
from bayplan.cache.scratch_table import ScratchTable
from bayplan.evaluation.evaluation import Evaluation
from bayplan.evaluation.kept_evaluations import KEPT_RULE_BYTES, KeptEvaluations
from bayplan.framework.nominated_table import Nominations
from bayplan.scheduler.decision import Placement

NODES = 400
HOSTNAME = "kubernetes.io/hostname"


class Scene:
    """A cluster, and kept evaluations of pods that are each of a shape of their own."""

    def __init__(self, limit=2**40):
        self.world = World()
        self.cache, self.nominator, self.framework = self.world.cache, self.world.nominator, self.world.framework
        self.add_nodes(0, NODES)
        self.kept = KeptEvaluations(self.cache.nodes, limit)

    def add_nodes(self, first, last):
        for number in range(first, last):
            labels = {HOSTNAME: f"n{number}", "zone": f"z{number % 3}"}
            self.cache.set_node(make_node(f"n{number}", labels=labels))

    def put(self, *numbers, used=True, **fields):
        for number in numbers:
            pod = make_pod_info(f"p{number}", labels={"app": f"a{number}"}, **{"cpu": f"{number + 1}m", **fields})
            evaluation = Evaluation(self.framework, self.cache.nodes)
            self.kept.put((1, number, None), evaluation, pod)
            if used:
                self.use(number, pod)

    def use(self, number, pod=None):
        evaluation = self.kept.get((1, number, None))
        pod = pod or make_pod_info(cpu=f"{number + 1}m")
        evaluation.refresh(pod)
        evaluation.totals(pod)

    def has(self, number):
        return self.kept.get((1, number, None)) is not None

    def drop(self, number):
        """As after a plugin that raised."""
        self.kept.get((1, number, None)).is_whole = False
        assert not self.has(number)


def fail(*_):
    raise RuntimeError("half way")


MANY_RULES = [make_term(f"pool In v{index}") for index in range(500)]
VERY_MANY_RULES = 4 * MANY_RULES


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({}, id="plain"),
        pytest.param({"spread": [spread(HOSTNAME), spread("zone", when_unsatisfiable="ScheduleAnyway")]}, id="spread"),
        pytest.param({"pod_anti_affinity": required(term(HOSTNAME))}, id="anti-affinity"),
        pytest.param({"preferred": [(1, make_term("zone In z1"))]}, id="preferred"),
    ],
)
def test_what_is_counted_is_what_is_taken(fields):
    scene = Scene()
    scene.put(0, 1, **fields)
    scene.kept = KeptEvaluations(scene.cache.nodes, 2**40)
    gc.collect()
    tracemalloc.start()
    try:
        scene.put(*range(10, 40), **fields)
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert scene.kept.measure() == pytest.approx(taken, rel=0.3)


def test_no_more_bytes_are_kept_than_the_limit_and_the_least_recently_used_go_first():
    scene = Scene(limit=2**20)
    scene.put(*range(10))
    scene.use(0)
    scene.put(*range(10, 200))
    # The last one is measured with the next.
    assert scene.kept.measure() <= 2**20 + 2**15
    assert 10 < len(scene.kept) < 100
    assert scene.has(199)
    assert not scene.has(1)


@pytest.mark.parametrize(("nodes", "mebibytes"), [(0, 128), (16_384, 128), (32_768, 192), (131_072, 768)])
def test_more_nodes_may_take_more_so_that_as_many_shapes_are_kept(nodes, mebibytes):
    table = NodeTable()
    table.capacity = nodes
    assert KeptEvaluations(table).limit == mebibytes * 2**20


def test_an_evaluation_that_is_used_stays_while_others_go():
    scene = Scene(limit=2**20)
    for number in range(200):
        scene.put(number)
        scene.use(0)
    assert scene.has(0)
    assert not scene.has(1)


def test_an_evaluation_that_grew_since_it_was_put_counts_with_what_it_takes_now():
    scene = Scene()
    scene.put(0, used=False)
    before = scene.kept.measure()
    scene.use(0)
    assert scene.kept.measure() > before + 20 * scene.cache.nodes.capacity


def test_shapes_with_many_rules_count_by_their_rules():
    scene = Scene(limit=KEPT_RULE_BYTES // 2)
    scene.put(*range(100), used=False)
    scene.put(*range(1000, 1040), used=False, node_affinity=MANY_RULES)
    assert scene.kept.measure() <= KEPT_RULE_BYTES // 2
    assert len(scene.kept) < 40
    assert scene.has(1039)


def test_rules_have_a_bound_of_their_own():
    scene = Scene()
    scene.put(*range(1000, 1080), used=False, node_affinity=MANY_RULES)
    assert scene.kept.measure() <= KEPT_RULE_BYTES + 2**20
    assert 2 < len(scene.kept) < 80


def test_of_shapes_with_very_many_rules_the_newest_is_kept_and_ousts_no_ordinary_one():
    scene = Scene()
    scene.put(*range(10))
    for number in range(1000, 1020):
        scene.put(number, used=False, node_affinity=VERY_MANY_RULES)
        assert scene.has(number)
    assert len(scene.kept) == 11
    assert all(scene.has(number) for number in range(10))
    scene.drop(1019)
    scene.put(1020, used=False, node_affinity=VERY_MANY_RULES)
    assert scene.has(1020)


def test_two_are_kept_however_large_they_are():
    scene = Scene(limit=1)
    scene.put(*range(5))
    assert [scene.has(number) for number in range(5)] == [False, False, False, True, True]


def test_what_was_dropped_counts_no_more():
    scene = Scene()
    scene.put(*range(5))
    for number in range(5):
        scene.drop(number)
    assert (len(scene.kept), scene.kept.measure()) == (0, 0)


def test_a_table_that_grew_makes_all_start_over_so_none_is_kept():
    scene = Scene()
    scene.put(*range(5))
    scene.add_nodes(NODES, 2 * NODES)
    assert not scene.has(0)
    assert scene.kept.measure() == 0


def test_one_that_a_plugin_left_half_way_is_dropped_and_no_other():
    scene = Scene()
    pod = make_pod_info(cpu="1")
    nominations = Nominations(scene.cache.nodes, scene.nominator, scene.kept.forget_nominated)
    scene.nominator.add(make_pod_info("nominated", priority=9), "n0")
    seen = nominations.respected_by(pod)
    keys = [(1, "shape", None), (1, "shape", seen), (2, "shape", None)]
    for key in keys:
        scene.kept.put(key, Evaluation(scene.framework, scene.cache.nodes, nominations, key[2]), pod)
    (fit,) = [each for each in scene.framework.filters if each.name == "NodeResourcesFit"]
    fit.filter = fail
    with pytest.raises(RuntimeError):
        scene.kept.get(keys[1]).refresh(pod)
    assert [scene.kept.get(key) is not None for key in keys] == [True, False, True]


def test_a_large_pod_holds_no_nominations_that_are_gone_and_that_nobody_asked_for_of_late():
    scene = Scene()
    pod = make_pod_info(cpu="1", node_affinity=VERY_MANY_RULES)
    nominations = Nominations(scene.cache.nodes, scene.nominator, scene.kept.forget_nominated)
    nominated = make_pod_info("nominated", priority=9)
    scene.nominator.add(nominated, "n0")
    seen = ref(nominations.respected_by(pod))
    scene.kept.put((1, "large", seen()), Evaluation(scene.framework, scene.cache.nodes, nominations, seen()), pod)
    scene.nominator.delete(nominated.uid)
    assert nominations.respected_by(pod) is None
    for _ in range(2):
        nominations.release_unused()
    gc.collect()
    assert seen() is None


def test_nominated_pods_count_once_with_the_evaluations_that_see_them():
    scene = Scene()
    nominations = Nominations(scene.cache.nodes, scene.nominator, scene.kept.forget_nominated)
    scene.nominator.add(make_pod_info("nominated", priority=9), "n0")
    seen = nominations.respected_by(make_pod_info())
    sizes = [scene.kept.measure()]
    for number in range(2):
        evaluation = Evaluation(scene.framework, scene.cache.nodes, nominations, seen)
        scene.kept.put((1, number, seen), evaluation, make_pod_info())
        sizes.append(scene.kept.measure())
    assert sizes[1] - sizes[0] == sizes[2] - sizes[1] + seen.nbytes
    scene.kept.forget_nominated(seen)
    assert scene.kept.measure() == 0


def tables():
    gc.collect()
    return sum(isinstance(each, ScratchTable) for each in gc.get_objects())


def test_what_saw_nominations_goes_with_them():
    scene = Scene()
    before = tables()
    for episode in range(20):
        nominated = make_pod_info(f"nominated{episode}", priority=episode % 3, cpu="1")
        scene.nominator.add(nominated, f"n{episode}")
        for cpu in range(1, 4):
            assert isinstance(scene.world.schedule(make_pod_info(cpu=f"{cpu}m")), Placement)
        scene.nominator.delete(nominated.uid)
        scene.world.schedule(make_pod_info(cpu="1m"))
    assert tables() <= before + 1
