"""The chart makes the objects that kustomize makes for the same switches, and the real helm installs them."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.conftest import StartControlPlane
from e2e.controlplane.bayplan_process import REPOSITORY
from e2e.controlplane.installation import CLUSTER_WIDE, COMPONENT_NAMES, OVERLAYS, kustomize, write_kustomization
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from e2e.helm.chart import CHART, helm, template

pytestmark = pytest.mark.controlplane

Named = dict[tuple[str, str], dict[str, Any]]

NAMESPACE = "bayplan-system"
SWITCHES = {
    "ha": "ha",
    "devices": "devices",
    "guaranteed": "guaranteed",
    "preemption": "preemption",
    "carefulPreemption": "careful-preemption",
    "volumes": "volumes",
    "defaultSpreading": "default-spreading",
    "flowControl": "flow-control",
    "networkPolicy": "network-policy",
    "admission": "admission",
    "reader": "reader",
    "resourceQuota": "resource-quota",
    "monitoring": "monitoring",
    "dashboards": "dashboards",
}
MONITORING = REPOSITORY / "docs" / "monitoring.md"
PRODUCTION = CHART / "values-production.yaml"
CONFIGURATIONS = ("preemption", "careful-preemption", "default-spreading")
"""The components with a configuration, in the order in which a kustomization with them makes what the chart makes."""
HASH = re.compile(r"^(bayplan-config(-shadow)?)-\w{10}$")


def _named(objects: Sequence[dict[str, Any]]) -> Named:
    """The objects by kind and name, without what tells the two tools apart and no API server sees.

    kustomize adds a hash to the name of the configuration, where the chart has a checksum in the pods, and a namespace
    to kinds that it does not know to be cluster-wide, which the API server drops. The Namespace is helm's to make.
    """
    found: Named = {}
    for each in objects:
        if each["kind"] == "Namespace":
            continue
        metadata = each["metadata"]
        metadata["name"] = HASH.sub(r"\1", metadata["name"])
        if each["kind"] in CLUSTER_WIDE:
            metadata.pop("namespace", None)
        if each["kind"] == "Deployment":
            each["spec"]["template"]["metadata"].pop("annotations", None)
            for volume in each["spec"]["template"]["spec"]["volumes"]:
                if "configMap" in volume:
                    volume["configMap"]["name"] = HASH.sub(r"\1", volume["configMap"]["name"])
        found[each["kind"], metadata["name"]] = each
    assert len(found) >= 6
    return found


def _on(*switches: str) -> dict[str, Any]:
    return {switch: {"enabled": True} for switch in switches}


@pytest.mark.parametrize(
    "switches",
    [
        (),
        *((switch,) for switch in SWITCHES),
        ("preemption", "carefulPreemption"),
        ("preemption", "defaultSpreading"),
        tuple(SWITCHES),
    ],
)
def test_the_chart_makes_the_objects_of_the_components_that_are_switched_on(
    control_plane: ControlPlane, tmp_path: Path, switches: tuple[str, ...]
) -> None:
    # Of two configurations the careful one counts in the chart; in a kustomization, the one of the last component.
    components = [SWITCHES[switch] for switch in switches if SWITCHES[switch] not in CONFIGURATIONS]
    components += [name for name in CONFIGURATIONS if name in {SWITCHES[switch] for switch in switches}]
    write_kustomization(tmp_path, components=components, namespace=NAMESPACE)
    expected = _named(kustomize(control_plane, tmp_path))
    made = _named(template(tmp_path, _on(*switches), namespace=NAMESPACE))
    assert made.keys() == expected.keys()
    for key, each in expected.items():
        assert made[key] == each, key


def test_a_shadow_is_the_overlay_of_that_name(control_plane: ControlPlane, tmp_path: Path) -> None:
    expected = _named(kustomize(control_plane, OVERLAYS / "shadow"))
    assert _named(template(tmp_path, _on("shadow"), namespace="bayplan-shadow")) == expected


def test_a_shadow_decides_for_the_schedulers_that_the_values_name(tmp_path: Path) -> None:
    values = {"shadow": {"enabled": True, "of": ["default-scheduler", "packer"]}}
    (container,) = _pods(tmp_path, values)["spec"]["containers"]
    assert [each for each in container["args"] if "--of" in each] == ["--of=default-scheduler", "--of=packer"]


@pytest.mark.parametrize("switch", [each for each in SWITCHES if each != "guaranteed"])
def test_a_shadow_goes_with_no_switch_for_what_it_does_not_do(tmp_path: Path, switch: str) -> None:
    with pytest.raises(RuntimeError, match=rf"a shadow writes nothing, and {switch}\.enabled does not go with it"):
        template(tmp_path, _on("shadow", switch), namespace="bayplan-shadow")


def test_the_pod_monitor_takes_the_place_of_the_service_monitor(control_plane: ControlPlane, tmp_path: Path) -> None:
    write_kustomization(tmp_path, components=["monitoring", "monitoring/pod-monitor"], namespace=NAMESPACE)
    values = {"monitoring": {"enabled": True, "podMonitor": True}}
    expected = _named(kustomize(control_plane, tmp_path))
    assert _named(template(tmp_path, values, namespace=NAMESPACE)) == expected


def test_the_ceiling_of_priorities_may_warn_at_first(control_plane: ControlPlane, tmp_path: Path) -> None:
    write_kustomization(tmp_path, components=["admission", "admission/warn"], namespace=NAMESPACE)
    values = {"admission": {"enabled": True, "ceilingAction": "Warn"}}
    expected = _named(kustomize(control_plane, tmp_path))
    assert _named(template(tmp_path, values, namespace=NAMESPACE)) == expected


def test_every_component_has_a_switch() -> None:
    assert {*SWITCHES.values(), "admission/warn", "monitoring/pod-monitor"} == COMPONENT_NAMES


def test_the_account_and_the_labels_that_prometheus_goes_by_are_values(tmp_path: Path) -> None:
    monitoring = {
        "enabled": True,
        "prometheus": {"serviceAccount": "scraper", "namespace": "observability"},
        "labels": {"release": "stack"},
    }
    made = _named(template(tmp_path, {"monitoring": monitoring}, namespace=NAMESPACE))
    scraper = [{"kind": "ServiceAccount", "name": "scraper", "namespace": "observability"}]
    for binding in (("ClusterRoleBinding", "bayplan-metrics-reader"), ("RoleBinding", "bayplan-discovery")):
        assert made[binding]["subjects"] == scraper
    for kind in ("ServiceMonitor", "PrometheusRule"):
        labels = made[kind, "bayplan"]["metadata"]["labels"]
        assert labels.items() >= {"release": "stack", "app.kubernetes.io/name": "bayplan"}.items()


def test_the_network_policy_lets_in_the_namespace_that_the_values_say_prometheus_is_in(tmp_path: Path) -> None:
    monitoring = {"enabled": False, "prometheus": {"serviceAccount": "scraper", "namespace": "observability"}}
    made = _named(template(tmp_path, {**_on("networkPolicy"), "monitoring": monitoring}, namespace=NAMESPACE))
    (rule,) = made["NetworkPolicy", "bayplan"]["spec"]["ingress"]
    (peer,) = rule["from"]
    assert peer["namespaceSelector"] == {"matchLabels": {"kubernetes.io/metadata.name": "observability"}}


@pytest.mark.parametrize("account", ["bayplan-prometheus", "bayplan"])
def test_an_account_of_prometheus_stays_in_its_namespace_whatever_it_is_called(tmp_path: Path, account: str) -> None:
    monitoring = {"enabled": True, "prometheus": {"serviceAccount": account, "namespace": "observability"}}
    made = _named(template(tmp_path, {"monitoring": monitoring}, namespace=NAMESPACE))
    scraper = [{"kind": "ServiceAccount", "name": account, "namespace": "observability"}]
    for binding in (("ClusterRoleBinding", "bayplan-metrics-reader"), ("RoleBinding", "bayplan-discovery")):
        assert made[binding]["subjects"] == scraper
    own = [{"kind": "ServiceAccount", "name": "bayplan", "namespace": NAMESPACE}]
    assert made["ClusterRoleBinding", "bayplan"]["subjects"] == own


def test_the_place_of_the_runbooks_is_a_value(control_plane: ControlPlane, tmp_path: Path) -> None:
    (documented,) = re.findall(r"```yaml\n(replacements:\n.*?)```", MONITORING.read_text(), re.DOTALL)
    overlay = yaml.safe_load(documented)
    write_kustomization(tmp_path, components=["monitoring"], namespace=NAMESPACE, **overlay)
    monitoring = {"enabled": True, "runbooks": overlay["replacements"][0]["sourceValue"]}
    rules = ("PrometheusRule", "bayplan")
    made = _named(template(tmp_path, {"monitoring": monitoring}, namespace=NAMESPACE))
    assert made[rules] == _named(kustomize(control_plane, tmp_path))[rules]


def test_a_release_in_the_namespace_of_everybody_is_refused_with_what_to_say(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="say --namespace bayplan-system --create-namespace"):
        template(tmp_path, {}, namespace="default")


def test_the_role_for_people_who_ask_is_refused_among_the_pods_of_the_control_plane(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="would open every port of every pod in kube-system"):
        template(tmp_path, _on("reader"), namespace="kube-system")


@pytest.mark.parametrize("names", [["bayplan"], ["bayplan", "batch"]])
def test_a_profile_that_the_policies_would_not_know_is_refused(tmp_path: Path, names: list[str]) -> None:
    profiles = [{"schedulerName": each} for each in ("bayplan", "batch")]
    config = yaml.safe_dump({"kind": "KubeSchedulerConfiguration", "profiles": profiles})
    values = {"config": config, "schedulerNames": names}
    template(tmp_path, values, namespace=NAMESPACE)
    if "batch" in names:
        template(tmp_path, {**values, **_on("admission")}, namespace=NAMESPACE)
        return
    with pytest.raises(RuntimeError, match=r"config has the profile batch, .* name it in schedulerNames"):
        template(tmp_path, {**values, **_on("admission")}, namespace=NAMESPACE)


ARGS = {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}

SPREADING, PACKING = (
    {"name": "PodTopologySpread", "args": {"defaultingType": defaulting}} for defaulting in ("System", "List")
)


@pytest.mark.parametrize(
    ("changed", "rolls"),
    [
        ({"podMaxBackoffSeconds": 20}, False),
        ({"profiles": [{"schedulerName": "bayplan", "pluginConfig": [ARGS]}]}, False),
        ({"profiles": [{"schedulerName": "another"}]}, True),
        ({"profiles": [{"schedulerName": "bayplan"}, {"schedulerName": "another"}]}, True),
        ({"profiles": [{"schedulerName": "bayplan", "plugins": {"score": {"disabled": [{"name": "*"}]}}}]}, True),
        ({"profiles": [{"schedulerName": "bayplan", "pluginConfig": [SPREADING]}]}, False),
        ({"profiles": [{"schedulerName": "bayplan", "pluginConfig": [ARGS, PACKING]}]}, True),
        ({"clientConnection": {"qps": 5}}, True),
        ({"leaderElection": {"leaseDuration": "30s"}}, True),
        ({"enableProfiling": False}, True),
    ],
)
def test_of_a_changed_configuration_what_replicas_do_not_take_over_rolls_the_deployment(
    tmp_path: Path, changed: Mapping[str, Any], rolls: bool
) -> None:
    plain = {"kind": "KubeSchedulerConfiguration", "profiles": [{"schedulerName": "bayplan"}]}
    before, after = (_pods(tmp_path, {"config": yaml.safe_dump(each)}) for each in (plain, {**plain, **changed}))
    assert (before != after) is rolls


@pytest.mark.parametrize("switch", ["preemption", "carefulPreemption", "defaultSpreading"])
def test_a_switch_that_changes_what_is_watched_rolls_the_deployment(tmp_path: Path, switch: str) -> None:
    assert _pods(tmp_path, {}) != _pods(tmp_path, _on(switch))


@pytest.mark.parametrize(
    "config", ["a: [", "[1]", "profiles: 5", "profiles: [5]", "profiles: [{pluginConfig: [5, {args: 5}]}]"]
)
def test_a_configuration_that_is_none_is_left_to_the_scheduler_to_refuse(tmp_path: Path, config: str) -> None:
    assert _pods(tmp_path, {"config": config})["spec"]


def _pods(home: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    """The pod template of the Deployment."""
    (deployment,) = [each for each in template(home, values, namespace=NAMESPACE) if each["kind"] == "Deployment"]
    pods: dict[str, Any] = deployment["spec"]["template"]
    return pods


def test_the_production_values_make_the_production_overlay(control_plane: ControlPlane, tmp_path: Path) -> None:
    expected = _named(kustomize(control_plane, OVERLAYS / "production"))
    assert _named(template(tmp_path, {}, namespace=NAMESPACE, files=(PRODUCTION,))) == expected


def test_a_release_in_another_namespace_is_an_overlay_with_that_namespace(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    write_kustomization(tmp_path, base=OVERLAYS / "production", namespace="batch")
    expected = _named(kustomize(control_plane, tmp_path))
    assert _named(template(tmp_path, {}, namespace="batch", files=(PRODUCTION,))) == expected


def test_what_the_values_say_is_in_the_objects(tmp_path: Path) -> None:
    values = {
        **_on("admission", "defaultSpreading"),
        "image": {"repository": "registry.example/bayplan", "digest": f"sha256:{'a' * 64}"},
        "imagePullSecrets": [{"name": "registry"}],
        "resources": {"requests": {"cpu": "4"}},
        "schedulerNames": ["one", "two"],
        "config": "kind: KubeSchedulerConfiguration\n",
    }
    values["admission"] = {"enabled": True, "highestPriority": 5, "namespaces": ["kube-system", "calico-system"]}
    made = _named(template(tmp_path, values, namespace=NAMESPACE))
    spec = made["Deployment", "bayplan"]["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert container["image"] == f"registry.example/bayplan@sha256:{'a' * 64}"
    assert container["resources"] == {"requests": {"cpu": "4"}}
    assert spec["imagePullSecrets"] == [{"name": "registry"}]
    assert made["ConfigMap", "bayplan-config"]["data"] == {"config.yaml": "kind: KubeSchedulerConfiguration\n"}
    ceiling = made["ConfigMap", "bayplan-priority-ceiling"]["data"]
    assert ceiling == {"highestPriority": "5", "namespaces": "kube-system calico-system"}
    for name in ("bayplan-pod-status", "bayplan-events", "bayplan-priority-ceiling"):
        policy = made["ValidatingAdmissionPolicy", name]
        variables = {each["name"]: each["expression"] for each in policy["spec"]["variables"]}
        assert variables["schedulerNames"] == "['one', 'two']", name


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"hA": {"enabled": True}}, "hA"),
        ({"ha": {"enabled": "yes"}}, "/ha/enabled"),
        ({"image": {"repository": "a", "digest": "latest"}}, "/image/digest"),
        ({"schedulerNames": []}, "/schedulerNames"),
        ({"admission": {"enabled": True, "highestPriority": "high", "namespaces": []}}, "/admission/highestPriority"),
        ({"admission": {"enabled": True, "highestPriority": 1, "namespaces": ["a b"]}}, "/admission/namespaces/0"),
        ({"admission": {"enabled": True, "ceilingAction": "Audit"}}, "/admission/ceilingAction"),
        ({"monitoring": {"enabled": True, "labels": {"release": 1}}}, "/monitoring/labels/release"),
        ({"monitoring": {"serviceAccount": "a"}}, "/monitoring"),
        ({"monitoring": {"enabled": True, "runbooks": "wiki.example.com"}}, "/monitoring/runbooks"),
    ],
)
def test_a_wrong_value_is_refused_by_its_name(tmp_path: Path, values: Mapping[str, Any], named: str) -> None:
    with pytest.raises(RuntimeError, match=re.escape(named)):
        template(tmp_path, values, namespace=NAMESPACE)


def test_the_chart_passes_helms_own_checks(tmp_path: Path) -> None:
    assert "1 chart(s) linted, 0 chart(s) failed" in helm("lint", "--strict", CHART, home=tmp_path)


def test_a_packaged_chart_holds_what_it_reads(tmp_path: Path) -> None:
    helm("package", CHART, "--destination", tmp_path, home=tmp_path)
    (packed,) = tmp_path.glob("bayplan-*.tgz")
    options = [f"--namespace={NAMESPACE}", f"--values={PRODUCTION}"]
    made = helm("template", "bayplan", packed, *options, home=tmp_path)
    assert made == helm("template", "bayplan", CHART, *options, home=tmp_path)
    assert len(list(yaml.safe_load_all(made))) > 20


def test_helm_installs_upgrades_and_takes_everything_away(
    start_control_plane: StartControlPlane, tmp_path: Path
) -> None:
    plane = start_control_plane(ControlPlaneOptions())
    switches = ["--set=preemption.enabled=true", "--set=volumes.enabled=true", "--set=networkPolicy.enabled=true"]
    release = [f"--namespace={NAMESPACE}", *switches]

    def run(*arguments: str | Path) -> str:
        return helm(*arguments, kubeconfig=plane.admin_kubeconfig, home=tmp_path)

    def replicas() -> int:
        count: int = plane.client.get("deployments", "bayplan", NAMESPACE)["spec"]["replicas"]
        return count

    assert "schedulerName: bayplan" in run("install", "bayplan", CHART, "--create-namespace", *release)
    assert replicas() == 1
    run("upgrade", "bayplan", CHART, *release, "--set=ha.enabled=true")
    assert replicas() == 2
    run("uninstall", "bayplan", f"--namespace={NAMESPACE}")
    for kind in ("deployments", "serviceaccounts", "configmaps", "roles", "poddisruptionbudgets"):
        left = plane.client.list(kind, NAMESPACE)
        assert [each["metadata"]["name"] for each in left if "bayplan" in each["metadata"]["name"]] == []
    for kind in ("clusterroles", "clusterrolebindings"):
        assert [each for each in plane.client.list(kind) if "bayplan" in each["metadata"]["name"]] == []
