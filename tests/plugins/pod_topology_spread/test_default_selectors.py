"""When the constraints a pod has by default may have changed, and when they cannot have."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import make_pod, make_selector
from tests.plugins.scenes import spread

from bayplan.api.meta_objects import ObjectMeta
from bayplan.api.workload_objects import (
    ReplicaSet,
    ReplicationController,
    ReplicationControllerSpec,
    Service,
    ServiceSpec,
    StatefulSet,
    WorkloadSpec,
)
from bayplan.cache.listers import Listers
from bayplan.cache.node_index import NodeIndex
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.config.types import PodTopologySpreadArgs, Profile
from bayplan.framework.runtime import Framework
from bayplan.plugins.pod_topology_spread.constraints import DefaultSelectors
from bayplan.plugins.pod_topology_spread.pod_topology_spread import PodTopologySpread


class Signing(PodTopologySpread):
    """The plugin in a profile of its own, with the pods that it was asked to sign."""

    def __init__(self):
        nodes, self.listers, self.asked = NodeTable(), Listers(), []
        super().__init__(PodTopologySpreadArgs(), NodeIndex(nodes), self.listers)
        self.framework = Framework(Profile(), {"queue_sort": [(self, 0)], "filter": [(self, 0)]})

    def sign_pod(self, pod):
        self.asked.append(pod.name)
        return super().sign_pod(pod)

    def put(self, each):
        self.listers.of(type(each)).set(each)


def pod(name="p", **given):
    return PodInfo(make_pod(name, uid=name, **{"labels": {"app": "web"}} | given))


def meta(name, version="1", namespace="default"):
    return ObjectMeta(name=name, namespace=namespace, resource_version=version)


def service(name, app=None, **of):
    return Service(meta(name, **of), ServiceSpec(None if app is None else {"app": app}))


def replica_set(name, app="web", **of):
    return ReplicaSet(meta(name, **of), WorkloadSpec(make_selector(app=app)))


def test_what_is_nothing_to_pods_has_none_of_them_signed_anew():
    plugin = Signing()
    for each in (service("web", "web"), replica_set("w")):
        plugin.put(each)
    pods = [
        pod(f"p{number}", labels={"app": "web", "number": str(number)}, owner="ReplicaSet/w") for number in range(50)
    ]
    before = [plugin.framework.signature(each) for each in pods]
    plugin.asked.clear()
    for each in (
        service("web", "web", version="2"),
        replica_set("w", version="2"),
        replica_set("another"),
        replica_set("w", "other", namespace="other"),
        service("web", "other", namespace="other"),
        service("selects-nothing"),
        StatefulSet(meta("w"), WorkloadSpec(make_selector(app="web"))),
        ReplicationController(meta("w"), ReplicationControllerSpec({"app": "web"})),
    ):
        plugin.put(each)
        assert [plugin.framework.signature(each) for each in pods] == before
    assert plugin.asked == []


@pytest.mark.parametrize(
    "change",
    [
        service("web", "other"),
        service("web"),
        service("more", "other"),
        replica_set("w", "other"),
        ReplicaSet(meta("w"), WorkloadSpec(None)),
    ],
    ids=["of a service", "of a service to none", "of a service that comes", "of its owner", "of its owner to none"],
)
def test_another_selector_has_pods_signed_anew(change):
    plugin = Signing()
    for each in (service("web", "web"), replica_set("w")):
        plugin.put(each)
    waiting = pod(owner="ReplicaSet/w")
    plugin.framework.signature(waiting)
    plugin.put(change)
    plugin.framework.signature(waiting)
    assert plugin.asked == ["p", "p"]


def test_pods_with_constraints_of_their_own_are_signed_once():
    plugin = Signing()
    waiting = pod(spread=[spread()])
    plugin.framework.signature(waiting)
    plugin.put(service("web", "web"))
    plugin.framework.signature(waiting)
    assert plugin.asked == ["p"]


APPS = st.sampled_from([None, "web", "web", "db"])
CHANGES = st.tuples(
    st.sampled_from([Service, ReplicaSet]), st.sampled_from(["default", "other"]), st.sampled_from("ab"), APPS
)


@given(st.lists(st.lists(CHANGES, max_size=4), max_size=8), st.booleans())
def test_a_kept_signature_is_what_a_new_one_would_be(rounds, starts_over):
    plugin = Signing()
    pods = [
        pod(f"{owner}-{ns}", namespace=ns, owner=owner)
        for ns in ("default", "other")
        for owner in (None, "ReplicaSet/a")
    ]
    for number, changes in enumerate(rounds):
        for kind, namespace, name, app in changes:
            lister = plugin.listers.of(kind)
            if app is None:
                lister.delete(f"{namespace}/{name}")
            else:
                lister.set((service if kind is Service else replica_set)(name, app, namespace=namespace))
        if starts_over and number == 1:
            # The log of changes does not reach back so far.
            for _ in range(10_000):
                plugin.put(service("selects-nothing"))
        for each in pods:
            assert plugin.framework.signature(each) == (plugin.sign_pod(PodInfo(each.pod)),)


def test_namespaces_whose_services_are_gone_leave_nothing_behind(allocated):
    listers = Listers()
    selectors = DefaultSelectors(listers)

    def come_and_go(numbers):
        for number in numbers:
            each = pod(namespace=f"n{number}")
            listers.of(Service).set(service("web", "web", namespace=each.namespace))
            assert selectors.inputs(each)[0]
            for name in ("web", "selects-nothing"):
                listers.of(Service).set(service(name, namespace=each.namespace))
            listers.of(Service).delete(f"{each.namespace}/web")
            listers.of(Service).delete(f"{each.namespace}/selects-nothing")
            assert not selectors.inputs(each)[0]

    allocated()
    # The log of changes has its size by then.
    come_and_go(range(2000))
    before = allocated()
    come_and_go(range(2000, 4000))
    assert allocated() - before < 300_000
