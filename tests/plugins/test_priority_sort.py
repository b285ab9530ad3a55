from tests.builders import make_pod_info

from bayplan.plugins.priority_sort import PrioritySort


def test_priority_comes_before_waiting_time():
    low, high = make_pod_info(priority=1), make_pod_info(priority=2)
    assert PrioritySort().sort_key(high, 9.0) < PrioritySort().sort_key(low, 1.0)


def test_of_equal_pods_the_one_queued_first_comes_first():
    pod = make_pod_info(priority=None)
    assert PrioritySort().sort_key(pod, 1.0) < PrioritySort().sort_key(pod, 2.0)
