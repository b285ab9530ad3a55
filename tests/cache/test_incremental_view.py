import pytest
from tests.builders import make_node, make_pod_info

from bayplan.cache.cache import Cache
from bayplan.cache.change_log import PodLog
from bayplan.cache.incremental_view import NodeView, PodView, UsageView

ALL = "all"


def noting(kind, simplify):
    """A view of a kind that notes what it reads."""

    class Noting(kind):
        read = None

        def _read_all(self):
            self.read = ALL

        def _read(self, changes):
            self.read = simplify(changes)

        def news(self):
            self.read = None
            assert self.catch_up() is (self.read is not None)
            return self.read

    return Noting


def rows_of(changes):
    return changes.tolist()


def names_of(changes):
    return [tuple(pod and pod.name for pod in pods) for _, *pods in changes]


@pytest.fixture
def cache():
    cache = Cache()
    for name in ("a", "b"):
        cache.set_node(make_node(name))
    return cache


@pytest.fixture
def views(cache):
    return [
        noting(kind, simplify)(cache.nodes)
        for kind, simplify in ((NodeView, rows_of), (UsageView, rows_of), (PodView, names_of))
    ]


def news(views):
    return [view.news() for view in views]


def test_a_view_reads_everything_at_first_and_then_nothing(views):
    assert news(views) == [ALL, ALL, ALL]
    assert news(views) == [None, None, None]


def test_each_kind_of_view_reads_what_it_follows(cache, views):
    news(views)
    cache.set_node(make_node("b", labels={"x": "y"}))
    b = cache.nodes.row("b")
    assert news(views) == [[b], [b], None]
    cache.set_pod(make_pod_info("p", uid="p", node="b"))
    assert news(views) == [None, [b], [(None, "p")]]
    cache.remove_pod("p")
    assert news(views) == [None, [b], [("p", None)]]


def test_a_new_layout_of_the_table_has_every_view_start_over(cache, views):
    news(views)
    for i in range(200):
        cache.set_node(make_node(f"n{i}"))
    assert news(views) == [ALL, ALL, ALL]


def test_a_view_that_fell_behind_its_log_starts_over_and_others_do_not(cache, views):
    cache.nodes.pods_changed = PodLog(keep=1)
    news(views)
    cache.set_pod(make_pod_info(node="b"))
    assert news(views) == [None, [cache.nodes.row("b")], ALL]


@pytest.mark.parametrize("kind", [NodeView, UsageView])
def test_by_default_a_view_of_rows_reads_all_rows_after_starting_over(cache, kind):
    class Counting(kind):
        def _start_over(self):
            self.seen = []

        def _read(self, changes):
            self.seen += changes.tolist()

    view = Counting(cache.nodes)
    view.catch_up()
    assert view.seen == list(range(cache.nodes.capacity))


def come_and_go(cache, count):
    for number in range(count):
        cache.set_pod(make_pod_info(f"p{number}", uid=f"p{number}", node="b"))
        cache.remove_pod(f"p{number}")


def test_pods_that_are_gone_are_held_only_while_a_view_has_yet_to_hear_of_it(cache):
    quick, slow = (noting(PodView, names_of)(cache.nodes) for _ in range(2))
    come_and_go(cache, 1)
    news([quick, slow])
    log = cache.nodes.pods_changed
    for _ in range(20):
        come_and_go(cache, 100)
        quick.catch_up()
    held = log.size
    assert len(slow.news()) == 4000
    for _ in range(20):
        come_and_go(cache, 100)
        assert [len(each) for each in news([quick, slow])] == [200, 200]
    assert log.size < held / 2
    del quick, slow
    come_and_go(cache, 2000)
    assert log.size < held / 2
