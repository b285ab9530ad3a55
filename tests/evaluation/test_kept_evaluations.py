import pytest
from tests.builders import make_pod, make_term

from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.evaluation.kept_evaluations import KeptEvaluations

PLAIN = PodInfo(make_pod(cpu="1"))
BULKY = PodInfo(make_pod(node_affinity=[make_term(f"pool In v{index}") for index in range(20_000)]))


@pytest.fixture
def kept():
    return KeptEvaluations(NodeTable())


def put(kept, *numbers, pod=PLAIN):
    for number in numbers:
        kept.put((1, number, None), f"evaluation {number}", pod)


def test_plain_shapes_are_kept_by_the_thousand(kept):
    put(kept, *range(5000))
    assert len(kept) == 5000
    assert kept.get((1, 0, None)) == "evaluation 0"
    assert kept.get((2, 0, None)) is None


def test_shapes_with_very_many_rules_push_out_the_least_recently_used_ones(kept):
    put(kept, *range(100))
    assert kept.get((1, 0, None))
    put(kept, *range(1000, 1040), pod=BULKY)
    assert len(kept) < 30
    assert kept.get((1, 1039, None))
    assert kept.get((1, 0, None)) is None


def test_what_was_pushed_out_or_forgotten_counts_no_more(kept):
    put(kept, *range(1000, 1040), pod=BULKY)
    for number in range(1000, 1040):
        kept.forget(1, number)
    assert len(kept) == 0
    put(kept, *range(5000))
    assert len(kept) == 5000


def test_a_shape_is_forgotten_whatever_nominations_it_saw(kept):
    for seen in (None, 7):
        kept.put((1, "shape", seen), "evaluation", PLAIN)
    kept.put((2, "shape", None), "of another profile", PLAIN)
    kept.forget(1, "shape")
    assert [kept.get(key) for key in ((1, "shape", None), (1, "shape", 7))] == [None, None]
    assert kept.get((2, "shape", None)) == "of another profile"
