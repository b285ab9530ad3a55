from tests.builders import make_pod

from bayplan.cache.pod_info import PodInfo
from bayplan.framework.interface import Binding
from bayplan.plugins.default_binder import DefaultBinder


def test_the_binding_names_the_pod_by_uid():
    pod = PodInfo(make_pod("p", namespace="ns", uid="u"))
    assert DefaultBinder().bind(pod, "n") == Binding(namespace="ns", name="p", uid="u", node_name="n")
