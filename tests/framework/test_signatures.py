from tests.builders import make_pod

from bayplan.cache.pod_info import PodInfo
from bayplan.config.types import Profile
from bayplan.framework.runtime import Framework
from bayplan.framework.status import Traits


class Signing:
    """A plugin that signs one thing of a pod and remembers whom it was asked about."""

    name = "Signing"

    def __init__(self, sign, *, signs_more=False, **inputs):
        self.traits = Traits(signs_more=signs_more)
        self.asked = []
        self.inputs = inputs
        self._sign = sign

    def sign_inputs(self, pod):
        return self.inputs.get(pod.namespace)

    def sign_pod(self, pod):
        self.asked.append(pod.name)
        return self._sign(pod)


def framework_of(*plugins):
    return Framework(Profile(), {"queue_sort": [(plugins[0], 0)], "filter": [(plugin, 0) for plugin in plugins]})


def pod(name, **given):
    return PodInfo(make_pod(name, uid=name, **given))


def test_pods_of_one_template_are_signed_once():
    plugin = Signing(lambda pod: pod.requests.amounts.get("cpu"))
    framework = framework_of(plugin)
    signatures = [framework.signature(pod(name, cpu=cpu)) for name, cpu in (("a", 1), ("b", 1), ("c", 2))]
    assert signatures[0] == signatures[1] != signatures[2]
    assert plugin.asked == ["a", "c"]


def test_a_plugin_that_looks_at_more_signs_every_pod():
    plugin = Signing(lambda pod: pod.name, signs_more=True)
    framework = framework_of(plugin)
    assert framework.signature(pod("a")) != framework.signature(pod("b"))
    assert plugin.asked == ["a", "b"]


def test_other_inputs_make_pods_be_signed_anew():
    plugin = Signing(lambda pod: plugin.inputs[pod.namespace], default=1)
    framework = framework_of(plugin)
    first, second = pod("a"), pod("b")
    before = framework.signature(first)
    assert framework.signature(second) == before
    plugin.inputs["default"] = 2
    assert framework.signature(second) == framework.signature(first) != before
    assert plugin.asked == ["a", "a"]


def test_a_pod_that_shares_nothing_shares_nothing_with_its_template():
    framework = framework_of(Signing(lambda pod: None))
    assert framework.signature(pod("a")) is framework.signature(pod("b")) is None


def test_other_inputs_of_others_leave_a_pod_its_signature():
    plugin = Signing(lambda pod: plugin.inputs[pod.namespace], mine="a", other="b")
    framework = framework_of(plugin)
    mine, other = pod("mine", namespace="mine"), pod("other", namespace="other")
    assert (framework.signature(mine), framework.signature(other)) == (("a",), ("b",))
    plugin.inputs["other"] = "c"
    assert (framework.signature(mine), framework.signature(other)) == (("a",), ("c",))
    assert plugin.asked == ["mine", "other", "other"]
