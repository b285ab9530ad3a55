"""What holds for every explanation, whatever the cluster."""

from collections import Counter

import msgspec
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.builders import make_node, make_pod
from tests.evaluation.clusters import default_profile, node_forms, node_of, pod_of, profiles, shapes
from tests.explain.scenes import Scene
from tests.reference.explanations import shortage_counts, smallest_reduction
from tests.reference.filters import Host

from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import PODS
from bayplan.explain.explain import Explainer
from bayplan.explain.explanation import Eviction, Explanation, LessOfResource, lines
from bayplan.explain.trace import trace_of

clusters = st.tuples(st.lists(node_forms(), min_size=1, max_size=8), st.lists(shapes(), max_size=6))


def scene_of(cluster, profile=None):
    forms, running = cluster
    nodes = [node_of(form, f"n{i}") for i, form in enumerate(forms, 1)]
    return Scene(
        nodes, [pod_of(each, f"r{i}", node=f"n{1 + i % len(nodes)}") for i, each in enumerate(running)], profile
    )


@given(clusters, shapes(), st.one_of(st.just(default_profile()), profiles()))
def test_every_node_is_counted_once_under_the_plugin_that_rejects_it(cluster, shape, profile):
    scene = scene_of(cluster, profile)
    decision = scene.decide(pod_of(shape, "p"))
    explanation = Explainer(scene.cache.nodes).explain(decision)
    assert explanation.feasible + sum(group.count for group in explanation.groups) == explanation.nodes
    counted = Counter()
    for group in explanation.groups:
        counted[group.plugin] += group.count
        assert group.causes
    rejected = Counter(each.rejected_by for each in trace_of(decision).values() if each.rejected_by is not None)
    assert counted == rejected


@given(clusters, shapes())
def test_each_change_that_is_told_makes_the_pod_fit(cluster, shape):
    scene, pod = scene_of(cluster), pod_of(shape, "p")
    for change in scene.explain(pod).changes:
        assert isinstance(change, Eviction) or scene.fits_on(pod, change)


@given(
    st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8), st.integers(0, 3), st.booleans()), min_size=1),
    st.integers(1, 9),
    st.integers(1, 9),
)
def test_shortages_are_those_of_each_node_by_itself(forms, cpu, memory):
    nodes = [
        make_node(f"n{i}", cpu=f"{cores * 500}m", memory=f"{gib}Gi", pods=pods)
        for i, (cores, gib, pods, _) in enumerate(forms)
    ]
    running = {i: make_pod(f"r{i}", node=f"n{i}", cpu="250m") for i, form in enumerate(forms) if form[3]}
    pod = make_pod(cpu=f"{cpu * 500}m", memory=f"{memory}Gi")
    explanation = Scene(nodes, list(running.values())).explain(pod)
    info = PodInfo(pod)
    hosts = [Host(node, (PodInfo(running[i]),) if i in running else ()) for i, node in enumerate(nodes)]
    told = {frozenset(cause.resource for cause in group.causes): group.count for group in explanation.groups}
    assert told == shortage_counts(info, hosts)
    if explanation.feasible:
        return
    smallest = smallest_reduction(info, hosts)
    shares = [each.by / info.requests.amounts[each.resource] for each in explanation.changes]
    assert shares == ([] if smallest is None else [float(smallest)])
    assert all(isinstance(each, LessOfResource) and each.resource != PODS for each in explanation.changes)


@given(st.lists(st.tuples(st.text(max_size=300), st.text(max_size=300)), min_size=1, max_size=4))
def test_hostile_names_are_printable_and_lines_are_bounded(names):
    assume(all(key for key, _ in names))
    nodes = [make_node(f"n{i}{value}", cpu=1, taints=[], labels={key: value}) for i, (key, value) in enumerate(names)]
    pod = make_pod(cpu=2, node_selector={key: f"other {value}" for key, value in names})
    scene = Scene(nodes)
    explanation = scene.explain(pod)
    for line in lines("a\x1b]0;evil\x07" * 99, explanation):
        assert line.isprintable()
    assert msgspec.json.decode(msgspec.json.encode(explanation), type=Explanation) == explanation


def test_lines_and_bytes_do_not_grow_with_nodes():
    def size(count):
        nodes = [
            make_node(f"n{i:06}", cpu=1, labels={"host": f"v{i:06}"}, taints=[f"k{i % 100}:NoSchedule"][: i % 2])
            for i in range(count)
        ]
        scene = Scene(nodes)
        explanation = scene.explain(make_pod(cpu=2, node_selector={"host": "x"}))
        return len(list(lines("p", explanation))), len(msgspec.json.encode(explanation))

    few, many = size(400), size(4000)
    assert many[0] == few[0] <= 20
    # Only numbers get longer.
    assert few[1] < many[1] < 4096


def test_groups_beyond_those_told_are_counted_together():
    nodes = [make_node(f"n{i}", taints=[f"k{i}:NoSchedule"]) for i in range(40)]
    scene = Scene(nodes)
    explanation = scene.explain(make_pod())
    assert (len(explanation.groups), explanation.other_groups, explanation.nodes_in_other_groups) == (16, 24, 24)
    assert "  24 nodes: for 24 other reasons" in scene.text(make_pod())


def test_a_pod_that_asks_for_thousands_of_resources_is_explained_in_few_causes():
    pod = make_pod(requests={f"example.com/r{i}": 1 for i in range(3000)})
    explanation = Scene([make_node(f"n{i}") for i in range(50)]).explain(pod)
    assert len(msgspec.json.encode(explanation)) < 8192
