from tests.builders import make_pod_info


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
