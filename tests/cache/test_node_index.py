import numpy as np
import pytest
from tests.builders import make_node

from bayplan.cache import node_index
from bayplan.cache.node_index import InternedColumn, NodeIndex


@pytest.fixture
def index(cache):
    return NodeIndex(cache.nodes)


def labels(cache, index, key):
    column = index.labels.column(key)
    return {name: column.values[column.ids[cache.nodes.row(name)]] for name in names(cache)}


def names(cache):
    return [cache.nodes.names[row] for row in cache.nodes.rows().tolist()]


def test_a_label_column_gives_each_row_its_value_and_none_without(cache, index):
    cache.set_node(make_node("a", labels={"zone": "x"}))
    cache.set_node(make_node("b", labels={"zone": ""}))
    cache.set_node(make_node("c"))
    assert labels(cache, index, "zone") == {"a": "x", "b": "", "c": None}
    column = index.labels.column("zone")
    assert column.ids.shape == (cache.nodes.capacity,)
    assert column.values[0] is None
    assert column.id_of("y") is None


def test_equal_values_share_a_place(cache, index):
    for name in "abc":
        cache.set_node(make_node(name, labels={"zone": "x"}))
    assert index.labels.column("zone").values == [None, "x"]


def test_columns_follow_changed_and_removed_nodes(cache, index):
    cache.set_node(make_node("a", labels={"zone": "x"}, taints=["t:NoSchedule"], unschedulable=True))
    row = cache.nodes.row("a")
    assert labels(cache, index, "zone") == {"a": "x"}
    assert index.unschedulable()[row]
    cache.set_node(make_node("a", labels={"zone": "y"}))
    assert labels(cache, index, "zone") == {"a": "y"}
    assert not index.unschedulable()[row]
    assert index.taints().values[index.taints().ids[row]] == ()
    cache.remove_node("a")
    assert index.labels.column("zone").ids[row] == 0


def test_columns_grow_with_the_table(cache, index):
    cache.set_node(make_node("first", labels={"zone": "x"}))
    assert labels(cache, index, "zone") == {"first": "x"}
    for i in range(200):
        cache.set_node(make_node(f"n{i}", labels={"zone": "y"}, taints=["t:NoSchedule"]))
    assert set(labels(cache, index, "zone").values()) == {"x", "y"}
    assert np.count_nonzero(index.taints().ids) == 200
    assert len(index.unschedulable()) == cache.nodes.capacity


def test_only_the_label_keys_used_last_keep_a_column(cache, monkeypatch):
    monkeypatch.setattr(node_index, "_KEPT_LABEL_KEYS", 2)
    index = NodeIndex(cache.nodes)
    cache.set_node(make_node("a", labels={"x": "1", "y": "2", "z": "3"}))
    x = index.labels.column("x")
    y = index.labels.column("y")
    assert index.labels.column("x") is x
    index.labels.column("z")
    assert index.labels.column("x") is x
    assert index.labels.column("y") is not y
    assert labels(cache, index, "y") == {"a": "2"}


def test_values_that_churn_do_not_pile_up(cache, index):
    for i in range(1000):
        cache.set_node(make_node("a", labels={"stamp": str(i)}, taints=[f"t={i}:NoSchedule"]))
        assert labels(cache, index, "stamp") == {"a": str(i)}
        assert index.taints().values[index.taints().ids[cache.nodes.row("a")]][0].value == str(i)
    assert len(index.labels.column("stamp").values) < 300
    assert len(index.taints().values) < 300


def test_each_value_is_asked_about_once():
    column = InternedColumn(8, None)
    for row, value in enumerate("abab"):
        column.set(row, value)
    asked = []

    def answer(value):
        asked.append(value)
        return value == "a"

    assert column.each(np.arange(5), answer, np.bool_).tolist() == [True, False, True, False, False]
    assert set(asked) == {None, "a", "b"}
    assert len(asked) == 3
    assert column.each(np.array([1]), answer, np.bool_).tolist() == [False]
    assert column.each(np.array([], dtype=np.intp), answer, np.bool_).tolist() == []
