from tests.builders import make_pod_info

from bayplan.framework.interface import Binding
from bayplan.plugins.default_binder import DefaultBinder


def test_the_binding_names_the_pod_by_uid():
    pod = make_pod_info("p", namespace="ns", uid="u")
    assert DefaultBinder().bind(pod, "n") == Binding(namespace="ns", name="p", uid="u", node_name="n")
