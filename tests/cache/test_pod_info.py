import pytest
from tests.builders import make_node, make_pod_info
from tests.plugins.inter_pod_affinity.affinity_scenes import required, term

from bayplan.cache.cache import Cache


def test_a_pod_without_a_resize_takes_what_it_asks_for():
    pod = make_pod_info(cpu="1")
    assert pod.placed is pod.requests


def test_what_is_derived_is_derived_once():
    pod = make_pod_info(cpu="1", host_ports=[80])
    assert pod.requests is pod.requests
    assert pod.placed is pod.placed
    assert pod.host_ports is pod.host_ports


def test_what_follows_from_the_spec_is_taken_over_from_another_pod_of_it():
    model, pod = make_pod_info("a", cpu="1"), make_pod_info("b", cpu="1")
    asked = model.requests
    pod.take_over(model)
    assert pod.requests is asked


def near(zone_key, **fields):
    return make_pod_info("p", uid="p", pod_affinity=required(term(zone_key)), **fields)


def test_a_new_version_has_the_affinity_terms_of_the_one_before():
    before, after = near("zone"), near("zone", node="n1")
    terms = before.affinity_terms
    after.share_terms_of(before)
    assert after.affinity_terms is terms


@pytest.mark.parametrize("after", [near("rack"), make_pod_info("p", uid="p")], ids=["others", "none"])
def test_a_version_with_other_affinity_terms_has_its_own(after):
    before = near("zone")
    _ = before.affinity_terms
    after.share_terms_of(before)
    fresh = near("rack") if after.pod.spec.affinity else make_pod_info()
    assert after.affinity_terms == fresh.affinity_terms


def test_a_pod_on_a_node_keeps_its_affinity_terms_from_version_to_version():
    cache, decided = Cache(), near("zone")
    cache.set_node(make_node("n1"))
    terms = decided.affinity_terms
    cache.assume_pod(decided, "n1")
    for cpu in ("1", "1", "2"):
        cache.set_pod(near("zone", node="n1", cpu=cpu))
        assert cache.pod("p").affinity_terms is terms
