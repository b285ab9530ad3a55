import msgspec
import pytest
from tests.builders import make_node, make_pod, make_pod_info
from tests.evaluation.clusters import default_profile
from tests.plugins.inter_pod_affinity.affinity_scenes import preferred, required, term
from tests.plugins.scenes import Scene, spread

from bayplan.api.objects import PersistentVolumeClaimSource, PodResourceClaim, Volume
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.status import SUCCESS, Code
from bayplan.plugins.registry import build_framework
from bayplan.plugins.unsupported_rules import UnsupportedRules
from bayplan.scheduler.cycle import FitError, Placement, SchedulingCycle

REQUIRED, PREFERRED = required(term()), preferred((1, term()))
SPREAD = "a DoNotSchedule topology spread constraint"
CLAIM = Volume(name="v", persistent_volume_claim=PersistentVolumeClaimSource(claim_name="c"))


def with_resource_claims():
    pod = make_pod()
    return msgspec.structs.replace(
        pod, spec=msgspec.structs.replace(pod.spec, resource_claims=[PodResourceClaim("gpu")])
    )


HARD = [
    (make_pod(pod_affinity=REQUIRED), "required pod affinity", "InterPodAffinity"),
    (make_pod(pod_anti_affinity=REQUIRED), "required pod anti-affinity", "InterPodAffinity"),
    (make_pod(spread=[spread()]), SPREAD, "PodTopologySpread"),
    (make_pod(spread=[spread(when_unsatisfiable="")]), SPREAD, "PodTopologySpread"),
    (make_pod(volumes=[CLAIM]), "a persistent volume claim", "VolumeBinding"),
    (make_pod(volumes=[Volume(name="v", ephemeral={})]), "an ephemeral volume", "VolumeBinding"),
    (make_pod(volumes=[Volume(name="v", gce_persistent_disk={})]), "an in-tree disk", "VolumeRestrictions"),
    (make_pod(volumes=[Volume(name="v", aws_elastic_block_store={})]), "an in-tree disk", "VolumeRestrictions"),
    (make_pod(volumes=[Volume(name="v", rbd={})]), "an in-tree disk", "VolumeRestrictions"),
    (make_pod(volumes=[Volume(name="v", iscsi={})]), "an in-tree disk", "VolumeRestrictions"),
    (with_resource_claims(), "resource claims", "DynamicResources"),
]


def ask(pod, implemented=()):
    plugin = UnsupportedRules(implemented)
    return plugin.pre_filter({}, PodInfo(pod), Scene().cache.nodes).status


@pytest.mark.parametrize(("pod", "what", "plugin"), HARD)
def test_a_pod_with_a_hard_rule_that_nothing_enforces_is_refused(pod, what, plugin):
    status = ask(pod)
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.message == f"pod has {what}, which bayplan does not schedule yet ({plugin})"
    assert status.plugin == plugin
    assert UnsupportedRules(()).sign_pod(PodInfo(pod)) != ()


@pytest.mark.parametrize(("pod", "what", "plugin"), HARD)
def test_a_rule_whose_plugin_exists_is_left_to_it(pod, what, plugin):
    assert ask(pod, {plugin}) is SUCCESS


@pytest.mark.parametrize(
    "pod",
    [
        make_pod(),
        make_pod(pod_affinity=PREFERRED, pod_anti_affinity=PREFERRED),
        make_pod(spread=[spread(when_unsatisfiable="ScheduleAnyway")]),
        make_pod(volumes=[Volume(name="scratch"), Volume(name="secrets", csi={"driver": "secrets"})]),
    ],
)
def test_wishes_and_volumes_without_a_place_are_no_hard_rules(pod):
    assert ask(pod) is SUCCESS
    assert UnsupportedRules(()).sign_pod(PodInfo(pod)) == ()


def test_several_rules_are_all_named():
    status = ask(make_pod(pod_affinity=REQUIRED, pod_anti_affinity=REQUIRED, volumes=[CLAIM, CLAIM]))
    assert len(status.reasons) == 3
    assert status.plugin == "InterPodAffinity VolumeBinding"


def test_every_profile_refuses_and_files_the_pod_under_the_missing_plugins():
    scene = Scene(make_node("a"), make_node("b"))
    framework = build_framework(default_profile(), scene.cache.nodes, scene.index)
    cycle = SchedulingCycle(scene.cache.nodes)
    result = cycle.schedule(PodInfo(with_resource_claims()), framework)
    assert isinstance(result, FitError)
    assert result.message.startswith(
        "0/2 nodes are available: pod has resource claims, which bayplan does not schedule yet (DynamicResources)."
    )
    assert result.diagnosis.rejector_plugins == {"DynamicResources"}
    assert isinstance(cycle.schedule(make_pod_info(), framework), Placement)
