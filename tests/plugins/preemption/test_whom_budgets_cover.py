from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.builders import make_pod, make_pod_info
from tests.plugins.preemption.worlds import make_budget

from bayplan.api.meta_objects import LabelSelector, LabelSelectorRequirement, ObjectMeta
from bayplan.api.workload_objects import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from bayplan.cache.listers import Lister
from bayplan.cache.pod_info import PodInfo
from bayplan.plugins.preemption.victims import Budgets

APPS = [f"a{i}" for i in range(50)]


class CountedLabels(dict):
    """Labels that count how often a selector asks for one."""

    asked = 0

    def get(self, key, default=None):
        type(self).asked += 1
        return super().get(key, default)


@pytest.fixture
def lister():
    lister = Lister()
    for app in APPS:
        lister.set(make_budget(app, app=app))
    return lister


@pytest.fixture
def pods():
    CountedLabels.asked = 0
    return [pod_that_counts(f"p{i}", app) for i, app in enumerate(APPS * 4)]


def pod_that_counts(name, app):
    pod = make_pod(name, uid=name)
    return PodInfo(replace(pod, metadata=replace(pod.metadata, labels=CountedLabels(app=app))))


def now_allowing(budget, allowed):
    status = replace(budget.status, disruptions_allowed=allowed)
    return replace(budget, status=status)


def test_a_pod_is_compared_with_the_budgets_whose_label_it_has_and_with_no_others(lister, pods):
    violating, others = Budgets(lister).split_by_violation(pods)
    assert (len(violating), others) == (len(pods), [])
    assert CountedLabels.asked == len(pods)


def test_what_a_budget_allows_may_change_without_any_pod_being_compared_again(lister, pods):
    budgets = Budgets(lister)
    budgets.split_by_violation(pods)
    asked = CountedLabels.asked
    for app in APPS:
        lister.set(now_allowing(lister.get(f"default/{app}"), 3))
    violating, others = budgets.split_by_violation(pods)
    assert (violating, others) == (pods[-len(APPS) :], pods[: -len(APPS)])
    lister.set(make_budget("elsewhere", namespace="another", app="a0"))
    budgets.split_by_violation(pods)
    assert CountedLabels.asked == asked


def test_the_version_grows_when_budgets_say_something_else_and_not_with_every_write(lister):
    budgets = Budgets(lister)
    seen = [budgets.version]
    for budget in (
        now_allowing(lister.get("default/a0"), 1),
        make_budget("new", app="a0"),
        make_budget("new", app="a1"),
        make_budget("new", disrupted=["p"], app="a1"),
    ):
        lister.set(budget)
        seen.append(budgets.version)
    lister.delete("default/new")
    seen.append(budgets.version)
    assert seen == sorted({*seen})
    healthy = lister.get("default/a0")
    lister.set(replace(healthy, metadata=replace(healthy.metadata, resource_version="99", labels={"some": "note"})))
    assert budgets.version == seen[-1]


SELECTORS = [
    None,
    LabelSelector(),
    LabelSelector(match_labels={"app": "a"}),
    LabelSelector(match_labels={"app": "a", "tier": "t"}),
    LabelSelector(match_expressions=[LabelSelectorRequirement(key="app", operator="In", values=["a", "b"])]),
    LabelSelector(match_expressions=[LabelSelectorRequirement(key="app", operator="NotIn", values=["a"])]),
    LabelSelector(match_expressions=[LabelSelectorRequirement(key="app", operator="Wrong", values=["a"])]),
]
PODS = [
    make_pod_info(f"p{i}", uid=f"p{i}", namespace=namespace, labels=labels)
    for i, (namespace, labels) in enumerate(
        product(("x", "y"), (None, {"app": "a"}, {"app": "b"}, {"app": "a", "tier": "t"}, {"tier": "t"}))
    )
]
CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["x", "y"]),
        st.sampled_from(["b1", "b2", "b3"]),
        st.one_of(st.none(), st.sampled_from(range(len(SELECTORS)))),
        st.integers(0, 2),
        st.sampled_from([None, {"p1": "now"}]),
        st.booleans(),
    ),
    max_size=20,
)


@settings(deadline=None)
@given(changes=CHANGES, as_evicted=st.booleans())
def test_after_any_changes_budgets_say_what_new_ones_would(changes, as_evicted):
    lister = Lister()
    kept = Budgets(lister, as_evicted=as_evicted)
    for serial, (namespace, name, selector, allowed, disrupted, is_asked) in enumerate(changes):
        if selector is None:
            lister.delete(f"{namespace}/{name}")
        else:
            before = lister.get(f"{namespace}/{name}")
            uid = str(serial) if before is None else before.metadata.uid
            lister.set(
                PodDisruptionBudget(
                    metadata=ObjectMeta(name=name, namespace=namespace, uid=uid),
                    spec=PodDisruptionBudgetSpec(selector=SELECTORS[selector]),
                    status=PodDisruptionBudgetStatus(disruptions_allowed=allowed, disrupted_pods=disrupted),
                )
            )
        if is_asked:
            assert kept.split_by_violation(PODS) == Budgets(lister, as_evicted=as_evicted).split_by_violation(PODS)
    fresh = Budgets(lister, as_evicted=as_evicted)
    assert [kept.covering(pod) for pod in PODS] == [fresh.covering(pod) for pod in PODS]
