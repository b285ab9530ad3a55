"""For which rows a selection is kept when nominations come and go."""

from tests.builders import make_pod_info

from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.plugins.preemption.on_columns import SelectionsOfAKind
from bayplan.plugins.preemption.victims import LowerPriorityPods, VictimRule, VictimSelection


def kept_on_row_0(*added: PodInfo) -> tuple[SelectionsOfAKind, VictimSelection]:
    table = NodeTable()
    lower = LowerPriorityPods(table, 5, VictimRule(0, lambda: 0.0))
    lower.victims = [(make_pod_info("victim"),)]
    kept, selection = SelectionsOfAKind(table, lower, 0), VictimSelection(0)
    kept.follow()
    kept.put(selection, added)
    return kept, selection


def test_a_selection_holds_among_the_same_nominated_pods_whichever_table_adds_them() -> None:
    nominated = make_pod_info("nominated")
    kept, selection = kept_on_row_0(nominated)
    kept.follow()
    assert kept.get(0, (nominated,)) is selection


def test_a_selection_does_not_hold_once_a_pod_is_nominated_or_none_is_any_more() -> None:
    kept, _ = kept_on_row_0()
    assert kept.get(0, (make_pod_info("nominated"),)) is None
    kept, _ = kept_on_row_0(make_pod_info("nominated"))
    assert kept.get(0, ()) is None


def test_a_selection_does_not_hold_for_a_newer_version_of_the_nominated_pod() -> None:
    kept, _ = kept_on_row_0(make_pod_info("nominated"))
    assert kept.get(0, (make_pod_info("nominated"),)) is None
