from sys import getsizeof

import pytest
from tests.builders import make_node, make_pod_info

from bayplan.cache.cache import Cache
from bayplan.framework.nominated_table import Nominations
from bayplan.framework.nominator import Nominator

PRIORITIES = range(0, 1200, 100)


class Scene:
    """A node with room, and a nominated pod of each priority."""

    def __init__(self, limit=2**40):
        self.cache = Cache()
        self.cache.set_node(make_node("n1"))
        self.nominator = Nominator()
        for priority in PRIORITIES:
            pod = make_pod_info(f"nominated-{priority}", uid=f"nominated-{priority}", priority=priority)
            self.nominator.add(pod, "n1")
        self.gone = []
        self.nominations = Nominations(self.cache.nodes, self.nominator, self.gone.append, limit)

    def seen_in_turn(self):
        """The tables that pods of each priority see, one after the other."""
        return [self.nominations.respected_by(make_pod_info(uid="waiting", priority=each)) for each in PRIORITIES]


def test_no_table_is_copied_again_however_many_priorities_are_nominated():
    scene = Scene()
    first = scene.seen_in_turn()
    for number in range(10):
        scene.cache.set_pod(make_pod_info(uid=f"p{number}", node="n1"))
        assert list(map(id, scene.seen_in_turn())) == list(map(id, first))
    assert [len(each.table.pods[0]) for each in first] == [10 + len(PRIORITIES) - place for place in range(len(first))]
    assert scene.gone == []


def test_no_table_is_copied_again_when_a_pod_is_nominated_after_the_last_one_is_placed():
    cache, nominator, gone = Cache(), Nominator(), []
    cache.set_node(make_node("n1"))
    nominations = Nominations(cache.nodes, nominator, gone.append)
    waiting = make_pod_info("waiting", uid="waiting")
    first, second = (make_pod_info(name, uid=name, priority=5) for name in ("first", "second"))
    nominator.add(first, "n1")
    table = nominations.respected_by(waiting)
    nominator.delete("first")
    assert nominations.respected_by(waiting) is None
    nominator.add(second, "n1")
    assert nominations.respected_by(waiting) is table
    assert table.pods == {0: [second]}
    nominator.delete("second")
    nominations.release_unused()
    assert gone == []
    nominations.release_unused()
    assert gone == [table]


def test_the_own_nomination_of_a_pod_makes_no_table():
    cache, nominator = Cache(), Nominator()
    cache.set_node(make_node("n1"))
    nominations = Nominations(cache.nodes, nominator, lambda table: None)
    preemptor, alike, higher, lower = (
        make_pod_info(name, uid=name, priority=priority)
        for name, priority in (("preemptor", 5), ("alike", 5), ("higher", 9), ("lower", 0))
    )
    nominator.add(preemptor, "n1")
    assert nominations.respected_by(preemptor) is None
    assert nominations.respected_by(lower).pods == {0: [preemptor]}
    nominator.add(higher, "n1")
    assert nominations.respected_by(preemptor).pods == {0: [higher]}
    nominator.add(alike, "n1")
    assert nominations.respected_by(preemptor) is nominations.respected_by(alike)
    assert nominations.respected_by(preemptor).others(0, preemptor) == [higher, alike]


def test_tables_are_let_go_of_when_together_they_take_too_many_bytes():
    one = Scene().seen_in_turn()[-1].nbytes
    scene = Scene(limit=6 * one)
    tables = scene.seen_in_turn()
    assert scene.gone == tables[:-6]
    # The cluster fills up, and with it every table.
    for number in range(1000):
        scene.cache.set_pod(make_pod_info(uid=f"p{number}", node="n1"))
    scene.nominations.respected_by(make_pod_info(uid="waiting", priority=PRIORITIES[-1]))
    assert scene.gone == tables[:-4]


@pytest.mark.parametrize("pods", [0, 1, 5, 6, 100, 1000])
def test_a_table_takes_no_more_than_it_says(pods):
    scene = Scene()
    for number in range(pods):
        scene.cache.set_pod(make_pod_info(uid=f"p{number}", node="n1"))
    table = scene.seen_in_turn()[-1]
    columns = sum(each.nbytes for each in table.table.requested.values())
    rows = sum(map(getsizeof, table.table.pods)) + 8 * len(table.table.pods)
    assert table.nbytes >= columns + rows


def test_the_logs_of_many_tables_keep_no_more_than_those_of_a_few():
    scene = Scene()
    tables = scene.seen_in_turn()

    class NeverReads:
        read_to = 1

    slow = NeverReads()
    for each in tables:
        each.table.pods_changed.readers.add(slow)
    for number in range(400):
        pod = make_pod_info(uid="p", node="n1", labels={"note": str(number) + "x" * 1000})
        scene.cache.set_pod(pod)
        scene.seen_in_turn()
        scene.cache.remove_pod("p")
        scene.seen_in_turn()
    logged = [each.table.pods_changed.size for each in tables]
    assert 12 * 2**20 < sum(logged) <= 4 * 2 * 6 * 2**20
