import msgspec
import pytest
from tests.builders import make_node, make_pod, make_pod_info
from tests.evaluation.clusters import build_framework, default_profile
from tests.plugins.scenes import Scene

from bayplan.api.objects import PersistentVolumeClaimSource, PodResourceClaim, TopologySpreadConstraint, Volume
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.status import SUCCESS
from bayplan.plugins.unsupported_rules import UnsupportedRules
from bayplan.scheduler.cycle import SchedulingCycle
from bayplan.scheduler.decision import FitError, Placement


@pytest.mark.parametrize(
    "pod",
    [
        make_pod(),
        make_pod(volumes=[Volume(name="v", persistent_volume_claim=PersistentVolumeClaimSource(claim_name="c"))]),
        make_pod(spread=[TopologySpreadConstraint(max_skew=1, topology_key="zone", when_unsatisfiable="")]),
    ],
)
def test_a_rule_whose_plugin_exists_is_left_to_it(pod):
    assert UnsupportedRules().pre_filter({}, PodInfo(pod), Scene().cache.nodes).status is SUCCESS


def test_every_profile_refuses_resource_claims_and_files_the_pod_under_dynamic_resources():
    scene = Scene(make_node("a"), make_node("b"))
    framework = build_framework(default_profile(), scene.cache.nodes)
    cycle = SchedulingCycle(scene.cache.nodes)
    devices = make_pod()
    devices = msgspec.structs.replace(
        devices, spec=msgspec.structs.replace(devices.spec, resource_claims=[PodResourceClaim(name="gpu")])
    )
    result = cycle.schedule(PodInfo(devices), framework).outcome
    assert isinstance(result, FitError)
    assert result.message == (
        "0/2 nodes are available: pod has resource claims, which bayplan does not schedule yet (DynamicResources). "
        "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )
    assert result.diagnosis.rejector_plugins == {"DynamicResources"}
    assert isinstance(cycle.schedule(make_pod_info(), framework).outcome, Placement)
