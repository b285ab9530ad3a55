"""What kustomize makes of the base with its components: the production overlay, and others on top of it."""

import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from e2e.controlplane.bayplan_process import REPOSITORY
from e2e.controlplane.installation import (
    CLUSTER_WIDE,
    COMPONENT_NAMES,
    COMPONENTS,
    MANIFESTS,
    OVERLAYS,
    kustomize,
    write_kustomization,
)
from e2e.controlplane.plane import ControlPlane

from bayplan.config.load import load_configuration
from bayplan.config.types import PodTopologySpreadArgs, PodTopologySpreadDefaulting, SchedulerConfiguration

pytestmark = pytest.mark.controlplane

Named = dict[tuple[str, str], dict[str, Any]]
MONITORING = REPOSITORY / "docs" / "monitoring.md"


def _built(control_plane: ControlPlane, folder: Path) -> Named:
    return {(each["kind"], each["metadata"]["name"]): each for each in kustomize(control_plane, folder)}


@pytest.fixture(scope="module")
def production(control_plane: ControlPlane) -> Named:
    """The objects of the production overlay, by kind and name."""
    return _built(control_plane, OVERLAYS / "production")


def test_two_replicas_are_replaced_one_after_the_other_and_share_a_lease_in_their_namespace(production: Named) -> None:
    spec = production["Deployment", "bayplan"]["spec"]
    assert spec["replicas"] == 2
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    (container,) = spec["template"]["spec"]["containers"]
    assert "--leader-elect-resource-namespace=$(POD_NAMESPACE)" in container["args"]
    references = {each["name"]: each["valueFrom"]["fieldRef"] for each in container["env"] if "valueFrom" in each}
    assert references["POD_NAMESPACE"]["fieldPath"] == "metadata.namespace"
    election = load_configuration(MANIFESTS / "config.yaml").leader_election
    assert (election.leader_elect, election.resource_name) == (True, "bayplan")
    labels = spec["template"]["metadata"]["labels"].items()
    (spread,) = spec["template"]["spec"]["topologySpreadConstraints"]
    assert spread["whenUnsatisfiable"] == "ScheduleAnyway"
    assert spread["labelSelector"]["matchLabels"].items() <= labels


def test_evictions_leave_one_of_the_two_replicas(production: Named) -> None:
    budget = production["PodDisruptionBudget", "bayplan"]["spec"]
    deployment = production["Deployment", "bayplan"]["spec"]
    assert (deployment["replicas"], budget["minAvailable"]) == (2, 1)
    assert budget["selector"] == deployment["selector"]
    # One that is not ready helps nobody, and must not hold up a drain.
    assert budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


def test_without_the_component_there_is_one_replica_and_no_budget_to_hold_up_a_drain(
    control_plane: ControlPlane,
) -> None:
    base = _built(control_plane, MANIFESTS)
    assert base["Deployment", "bayplan"]["spec"]["replicas"] == 1
    assert "PodDisruptionBudget" not in {kind for kind, _ in base}


def test_in_production_requests_are_limits_so_that_the_pod_is_guaranteed(production: Named) -> None:
    (container,) = production["Deployment", "bayplan"]["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["requests"] == container["resources"]["limits"]
    assert container["resources"]["limits"].keys() == {"cpu", "memory"}


def test_the_network_policy_is_about_the_pods_of_the_deployment_and_opens_their_port_only(production: Named) -> None:
    policy, deployment = production["NetworkPolicy", "bayplan"]["spec"], production["Deployment", "bayplan"]["spec"]
    (container,) = deployment["template"]["spec"]["containers"]
    assert policy["podSelector"] == deployment["selector"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    ports = [port["port"] for rule in policy["ingress"] for port in rule["ports"]]
    assert ports == [port["containerPort"] for port in container["ports"]]


def test_the_network_policy_lets_in_prometheus_of_the_namespace_whose_account_may_scrape_and_of_no_other(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    write_kustomization(tmp_path / "shipped", components=["network-policy", "monitoring"])
    (documented,) = re.findall(r"```yaml\n(patches:\n.*?)```", MONITORING.read_text(), re.DOTALL)
    write_kustomization(tmp_path / "elsewhere", base=tmp_path / "shipped", **yaml.safe_load(documented))
    places = [_namespace_of_prometheus(_built(control_plane, tmp_path / name)) for name in ("shipped", "elsewhere")]
    assert places == ["monitoring", "observability"]


def _namespace_of_prometheus(built: Named) -> str:
    """The namespace that the policy lets in, after a look that it is one and that of the account that may scrape."""
    (scraper,) = built["ClusterRoleBinding", "bayplan-metrics-reader"]["subjects"]
    (rule,) = built["NetworkPolicy", "bayplan"]["spec"]["ingress"]
    # A tenant names pods, but of namespaces the API server sets this label.
    assert rule["from"] == [
        {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": scraper["namespace"]}},
            "podSelector": {"matchLabels": {"app.kubernetes.io/name": "prometheus"}},
        }
    ]
    place: str = scraper["namespace"]
    return place


@pytest.mark.parametrize(("folder", "leads_to_pods"), [("trial", False), ("production", True)])
def test_who_may_ask_the_scheduler_is_led_to_pods_only_where_it_has_a_namespace_of_its_own(
    control_plane: ControlPlane, folder: str, *, leads_to_pods: bool
) -> None:
    built = _built(control_plane, OVERLAYS / folder)
    rules = [(key, rule) for key, each in built.items() for rule in each.get("rules", []) if "Role" in key[0]]
    leading = [key for key, rule in rules if "pods/portforward" in rule.get("resources", [])]
    assert leading == [("Role", "bayplan-reader")] * leads_to_pods
    assert (("Namespace", "bayplan-system") in built) is leads_to_pods


def test_an_overlay_moves_everything_to_its_namespace_and_names_its_image(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    image = {"name": "bayplan", "newName": "registry.example/bayplan", "newTag": "9.9.9"}
    write_kustomization(tmp_path, base=OVERLAYS / "production", namespace="batch", images=[image])
    built = _built(control_plane, tmp_path)
    (container,) = built["Deployment", "bayplan"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.example/bayplan:9.9.9"
    named = [path for each in built.values() for path in _strings(each, "bayplan-system")]
    assert named == []
    subjects = [subject for each in built.values() for subject in each.get("subjects", [])]
    assert len(subjects) == 6
    assert {subject["namespace"] for subject in subjects} == {"batch"}
    assert _namespaces_asked_for(built) == {"batch"}


@pytest.mark.parametrize(
    ("components", "preempts", "evicts"),
    [((), False, False), (("preemption",), True, False), (("careful-preemption",), True, True)],
)
def test_a_configuration_preempts_where_its_component_brings_the_right_to(
    control_plane: ControlPlane, tmp_path: Path, components: tuple[str, ...], *, preempts: bool, evicts: bool
) -> None:
    (profile,) = _configuration(control_plane, tmp_path, components).profiles
    built = kustomize(control_plane, tmp_path)
    rules = [rule for each in built if each["kind"] == "ClusterRole" for rule in each["rules"]]
    rights = {(resource, verb) for rule in rules for resource in rule.get("resources", []) for verb in rule["verbs"]}
    assert ("DefaultPreemption" not in [plugin.name for plugin in profile.plugins.post_filter.disabled]) is preempts
    assert ("pods", "delete") in rights if preempts and not evicts else ("pods", "delete") not in rights
    assert (("pods/eviction", "create") in rights) is evicts


@pytest.mark.parametrize("preempting", [(), ("preemption",), ("careful-preemption",)])
def test_default_spreading_changes_one_field_of_the_configuration_that_is_there(
    control_plane: ControlPlane, tmp_path: Path, preempting: tuple[str, ...]
) -> None:
    packing = _configuration(control_plane, tmp_path / "packing", preempting)
    spreading = _configuration(control_plane, tmp_path / "spreading", (*preempting, "default-spreading"))
    (packs,), (spreads,) = packing.profiles, spreading.profiles
    assert packs.plugin_config["PodTopologySpread"] == PodTopologySpreadArgs(
        defaulting_type=PodTopologySpreadDefaulting.LIST
    )
    assert {**packs.plugin_config, "PodTopologySpread": PodTopologySpreadArgs()} == spreads.plugin_config
    assert replace(spreading, profiles=()) == replace(packing, profiles=())
    assert replace(spreads, plugin_config={}) == replace(packs, plugin_config={})


def test_default_spreading_spoils_no_configuration_that_it_does_not_know(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    (tmp_path / "config.yaml").write_text("kind: KubeSchedulerConfiguration\n")
    own = {"name": "bayplan-config", "behavior": "replace", "files": ["config.yaml"]}
    write_kustomization(tmp_path, components=["default-spreading"], configMapGenerator=[own])
    with pytest.raises(RuntimeError, match=r"options\.index 2 is out of bounds for value kind: KubeSchedulerConf"):
        kustomize(control_plane, tmp_path)
    # On top of an overlay with the component it is as in every other overlay.
    write_kustomization(tmp_path / "below", components=["default-spreading"])
    write_kustomization(tmp_path, base=tmp_path / "below", configMapGenerator=[own])
    built = kustomize(control_plane, tmp_path)
    (text,) = [each["data"]["config.yaml"] for each in built if each["kind"] == "ConfigMap"]
    assert text == "kind: KubeSchedulerConfiguration\n"
    assert "bayplan-default-spreading" in [each["metadata"]["name"] for each in built if each["kind"] == "ClusterRole"]


def _configuration(control_plane: ControlPlane, folder: Path, components: tuple[str, ...]) -> SchedulerConfiguration:
    write_kustomization(folder, components=components)
    (text,) = [each["data"]["config.yaml"] for each in kustomize(control_plane, folder) if each["kind"] == "ConfigMap"]
    (folder / "config.yaml").write_text(text)
    return load_configuration(folder / "config.yaml")


def _named_by(folder: Path, components: Path = COMPONENTS) -> set[str]:
    """The components that an overlay names."""
    document = yaml.safe_load((folder / "kustomization.yaml").read_text())
    return {str((folder / path).resolve().relative_to(components)) for path in document["components"]}


@pytest.mark.parametrize(
    ("base", "namespace", "added"),
    [
        (MANIFESTS, "kube-system", COMPONENT_NAMES),
        (OVERLAYS / "production", "bayplan-system", sorted(COMPONENT_NAMES - _named_by(OVERLAYS / "production"))),
    ],
    ids=["base", "production"],
)
def test_what_components_add_is_where_the_scheduler_is_although_the_namespace_is_not_named_again(
    control_plane: ControlPlane, tmp_path: Path, base: Path, namespace: str, added: Iterable[str]
) -> None:
    write_kustomization(tmp_path, base=base, components=sorted(added))
    built = _built(control_plane, tmp_path)
    places = {key: each["metadata"].get("namespace") for key, each in built.items() if key[0] not in CLUSTER_WIDE}
    assert len(places) >= 14
    assert set(places.values()) == {namespace}, places
    subjects = [subject for each in built.values() for subject in each.get("subjects", [])]
    ours = [subject for subject in subjects if subject["name"].startswith("bayplan")]
    assert {subject.get("namespace") for subject in ours} == {namespace}
    assert _namespaces_asked_for(built) == {namespace}


def test_the_lines_for_monitoring_only_have_to_be_uncommented(control_plane: ControlPlane, tmp_path: Path) -> None:
    for folder in (MANIFESTS, COMPONENTS, OVERLAYS):
        shutil.copytree(folder, tmp_path / folder.name)
    file = tmp_path / "overlays" / "production" / "kustomization.yaml"
    file.write_text(file.read_text().replace("# - ", "- "))
    kinds = {kind for kind, _ in _built(control_plane, file.parent)}
    assert {"ServiceMonitor", "PrometheusRule"} <= kinds
    assert _named_by(file.parent, tmp_path / "components") >= {"monitoring", "dashboards"}


def _namespaces_asked_for(built: Named) -> set[str]:
    """Of the account whose requests have a share of the API server, and of what the ceiling of priorities is."""
    flows = [built["FlowSchema", name]["spec"]["rules"] for name in ("bayplan", "bayplan-leases")]
    asking = {
        subject["serviceAccount"]["namespace"] for rules in flows for rule in rules for subject in rule["subjects"]
    }
    return asking | {
        built["ValidatingAdmissionPolicyBinding", "bayplan-priority-ceiling"]["spec"]["paramRef"]["namespace"]
    }


def _strings(value: object, wanted: str, path: str = "") -> Iterator[str]:
    """Where a text stands, but for names of cluster-wide objects."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _strings(each, wanted, f"{path}.{key}")
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _strings(each, wanted, f"{path}[{index}]")
    elif isinstance(value, str) and wanted in value:
        yield path
