from tests.builders import make_pod_info


def test_a_pod_without_a_resize_takes_what_it_asks_for():
    pod = make_pod_info(cpu="1")
    assert pod.placed is pod.requests


def test_what_is_derived_is_derived_once():
    pod = make_pod_info(cpu="1", host_ports=[80])
    assert pod.requests is pod.requests
    assert pod.placed is pod.placed
    assert pod.host_ports is pod.host_ports
