"""How much work pods with many terms of their own make; each selector may match any of them."""

import pytest
from tests.builders import make_node, make_pod, make_selector
from tests.plugins.inter_pod_affinity.affinity_scenes import AffinityScene, preferred, required, term

from bayplan.api.objects import Pod
from bayplan.cache.affinity_terms import AffinityTerm
from bayplan.cache.pod_info import PodInfo

PODS, TERMS = 20, 10


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[AffinityTerm]:
    """The terms of pods on nodes that were compared with a pod, one after the other."""
    terms: list[AffinityTerm] = []
    matches = AffinityTerm.matches

    def counted(self: AffinityTerm, *about: object) -> bool:
        terms.append(self)
        return matches(self, *about)

    monkeypatch.setattr(AffinityTerm, "matches", counted)
    return terms


def crowd_pod(index: int, node: str = "", app: str = "crowd") -> Pod:
    wishes = [(1, term("host", make_selector(f"key-{index}-{each} DoesNotExist"))) for each in range(TERMS)]
    return make_pod(
        f"crowd-{index}",
        namespace="crowd",
        labels={"app": app},
        node=node,
        pod_anti_affinity=preferred(*wishes),
    )


def test_a_term_is_compared_once_with_pods_of_equal_labels_however_their_own_terms_differ(compared):
    scene = AffinityScene(make_node("a", labels={"host": "a"}), make_node("b", labels={"host": "b"}))
    for index in range(PODS):
        scene.raw_scores(crowd_pod(index))
        scene.add(crowd_pod(index, "a"))

    assert len(compared) == len(set(compared)) == (PODS - 1) * TERMS


def test_terms_are_compared_once_with_pods_whose_labels_differ_where_no_term_reads_them(compared, monkeypatch):
    selects, asked = AffinityTerm.selects, list[AffinityTerm]()
    monkeypatch.setattr(AffinityTerm, "selects", lambda self, labels: asked.append(self) or selects(self, labels))
    scene = AffinityScene(make_node("a", labels={"host": "a"}), make_node("b", labels={"host": "b"}))
    for index in range(PODS):
        scene.raw_scores(crowd_pod(index, app=f"app-{index}"))
        scene.add(crowd_pod(index, "a", app=f"app-{index}"))

    assert len(compared) == len(set(compared)) == (PODS - 1) * TERMS
    assert len(asked) == len(set(asked)) == (PODS - 1) * TERMS


@pytest.mark.parametrize("own", ["app", "tier"])
def test_a_term_that_comes_later_reads_labels_that_none_read_before(own):
    scene = AffinityScene(make_node("a", labels={"host": "a"}), make_node("b", labels={"host": "b"}))
    wishes = preferred((3, term("host", make_selector(f"{own} Exists"))))
    pods = [make_pod(labels=labels, pod_affinity=wishes) for labels in ({}, {"tier": "x"}, {"tier": "y", "app": "z"})]
    scene.add(crowd_pod(0, "a"))
    later = term("host", make_selector("tier NotIn y"))
    others = [
        make_pod(f"other-{at}", node="b", pod_anti_affinity=kind)
        for at, kind in enumerate((required(later), preferred((5, later))))
    ]
    for change in (lambda other: None, scene.add, lambda other: scene.cache.remove_pod(other.metadata.uid)):
        for other in others:
            change(other)
            for pod in pods:
                scene.check(pod)


def test_terms_about_one_namespace_are_not_compared_with_pods_of_others(compared):
    scene = AffinityScene(make_node("a", labels={"host": "a"}))
    scene.add(*(crowd_pod(index, "a") for index in range(PODS)))

    assert scene.raw_scores(make_pod(namespace="others")) is None
    assert compared == []


def test_a_label_tells_pods_apart_from_when_a_term_reads_it():
    scene = AffinityScene(make_node("a", labels={"host": "a"}))
    scene.add(crowd_pod(0, "a"))
    with_key, without = PodInfo(make_pod(labels={"key-1-0": "x"})), PodInfo(make_pod())

    assert scene.state(with_key) is scene.state(without)
    scene.add(crowd_pod(1, "a"))
    assert scene.state(with_key) is not scene.state(without)
