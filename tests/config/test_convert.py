"""Configurations as text: what `config convert` and `config show` print."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.config.configurations import ALL_PLUGINS, POLICY, V1, fit, load, profile_with_args
from tests.examples import examples

from bayplan.config.bounded_yaml import resolve_scalar
from bayplan.config.convert import to_effective_yaml, to_minimal_yaml
from bayplan.config.load import default_configuration
from bayplan.config.plugin_sets import UPSTREAM_DEFAULT_PLUGINS
from bayplan.config.types import PLUGIN_SET_KEYS

# Strings a careless writer would leave without quotes.
TRAPS = [
    "y",
    "no",
    "on",
    "null",
    "~",
    "",
    "1e3",
    "0x1f",
    "010",
    "1_0",
    "2020-01-01",
    "<<",
    "*",
    "a: b",
    "- x",
    "#",
    "é\u2028",
    "\0",
    "a\nb",
]


def optional(values):
    return st.none() | values


def some(**fields):
    return st.fixed_dictionaries({}, optional=fields)


_names = st.sampled_from(TRAPS[:-1]) | st.text(max_size=8)
_weights = st.integers(0, 100)
_resources = st.lists(st.builds(lambda name, weight: {"name": name, "weight": weight}, _names, _weights), max_size=3)
_durations = st.integers(1, 10**9).map(lambda number: f"{number}us")
_shape = st.lists(st.integers(0, 100), unique=True, min_size=1, max_size=3).flatmap(
    lambda steps: st.tuples(*(st.integers(0, 10) for _ in steps)).map(
        lambda scores: [{"utilization": u, "score": s} for u, s in zip(sorted(steps), scores, strict=True)]
    )
)
_strategy = st.one_of(
    st.fixed_dictionaries({"type": st.sampled_from(["LeastAllocated", "MostAllocated"]), "resources": _resources}),
    st.fixed_dictionaries(
        {
            "type": st.just("RequestedToCapacityRatio"),
            "resources": _resources,
            "requestedToCapacityRatio": st.fixed_dictionaries({"shape": _shape}),
        }
    ),
)
_several = st.lists(st.tuples(_strategy, _weights), min_size=1, max_size=3).map(
    lambda listed: {"bayplan.io": {"scoringStrategies": [each | {"weight": weight + 1} for each, weight in listed]}}
)
_expression = st.sampled_from(
    [
        {"key": "a", "operator": "Exists"},
        {"key": "b.c/d", "operator": "In", "values": ["on", "1"]},
        {"key": "e", "operator": "Gt", "values": ["5"]},
    ]
)
_term = some(matchExpressions=st.lists(_expression, max_size=2))
_affinity = some(
    requiredDuringSchedulingIgnoredDuringExecution=some(nodeSelectorTerms=st.lists(_term, max_size=2)),
    preferredDuringSchedulingIgnoredDuringExecution=st.lists(some(weight=_weights, preference=_term), max_size=2),
)
_constraints = st.lists(st.sampled_from(["zone", "rack"]), unique=True).map(
    lambda keys: [{"maxSkew": 2, "topologyKey": key, "whenUnsatisfiable": "ScheduleAnyway"} for key in keys]
)
_args = {
    "NodeResourcesFit": some(
        ignoredResources=st.lists(st.sampled_from(["a.com/b", "on"])),
        ignoredResourceGroups=st.lists(st.sampled_from(["a.com", "no"])),
        scoringStrategy=_strategy,
    )
    | _several,
    "NodeResourcesBalancedAllocation": some(
        **{
            "resources": st.lists(_names, unique=True, max_size=3).map(
                lambda names: [{"name": name} for name in names]
            ),
            "bayplan.io": some(measure=st.sampled_from(["Improvement", "Result"])),
        }
    ),
    "NodeAffinity": some(addedAffinity=_affinity),
    "InterPodAffinity": some(hardPodAffinityWeight=_weights, ignorePreferredTermsOfExistingPods=st.booleans()),
    "PodTopologySpread": st.fixed_dictionaries({"defaultingType": st.just("List"), "defaultConstraints": _constraints}),
    "VolumeBinding": some(bindTimeoutSeconds=st.integers(0, 2**40)),
    "DynamicResources": some(
        **{
            "filterTimeout": _durations,
            "bayplan.io": some(
                deviceChoice=st.sampled_from(["FirstFit", "LeastLeftOver"]), shape=st.just([{"score": 3}])
            ),
        }
    ),
    "DefaultPreemption": some(
        **{
            "minCandidateNodesPercentage": st.integers(1, 100),
            "minCandidateNodesAbsolute": _weights,
            "bayplan.io": some(
                pdbPolicy=st.sampled_from(["Prefer", "Strict"]),
                minimumRuntimeSeconds=_weights,
                preemptionDelaySeconds=_weights,
            ),
        }
    ),
    "Outside": st.dictionaries(_names, _names | st.integers() | st.booleans() | st.none(), max_size=3),
}
_plugins = [*sorted(ALL_PLUGINS), "Outside"]
_plugin_set = some(
    enabled=st.lists(st.sampled_from(_plugins), unique=True, max_size=3).flatmap(
        lambda chosen: st.tuples(*(some(weight=st.integers(-5, 9)).map({"name": n}.__or__) for n in chosen)).map(list)
    ),
    disabled=st.lists(st.sampled_from([*_plugins, "*"]), max_size=3).map(lambda names: [{"name": n} for n in names]),
)
_sets = some(**{key: _plugin_set for key in PLUGIN_SET_KEYS.values() if key != "queueSort"})
_config = st.lists(st.sampled_from(sorted(_args)), unique=True, max_size=4).flatmap(
    lambda chosen: st.tuples(
        *(_args[name].map(lambda args, name=name: {"name": name, "args": args}) for name in chosen)
    )
)
_profile = some(percentageOfNodesToScore=st.integers(0, 100), plugins=_sets, pluginConfig=_config.map(list))
_profiles = st.lists(_names.filter(bool), unique=True, min_size=1, max_size=3).flatmap(
    lambda names: st.tuples(*(_profile.map({"schedulerName": name}.__or__) for name in names)).map(list)
)
_tls = some(insecure=st.booleans(), serverName=_names, keyFile=_names, keyData=st.sampled_from(["aGk=", ""]))
_extender = some(
    urlPrefix=_names,
    filterVerb=_names,
    prioritizeVerb=_names,
    enableHTTPS=st.booleans(),
    httpTimeout=_durations,
    ignorable=st.booleans(),
    tlsConfig=_tls,
).map(lambda fields: {"weight": 3, "managedResources": [], **fields})
documents = some(
    parallelism=st.integers(1, 2**31 - 1),
    leaderElection=some(leaderElect=st.booleans(), leaseDuration=_durations, resourceName=_names)
    .map(lambda fields: fields | {"renewDeadline": "1us"})
    .filter(lambda fields: fields.get("leaseDuration") != "1us"),
    clientConnection=some(
        kubeconfig=_names,
        contentType=_names,
        burst=st.integers(0, 2**31 - 1),
        qps=st.floats(-1e30, 1e30, allow_nan=False) | st.integers(-5, 10**6),
    ),
    enableProfiling=st.booleans(),
    enableContentionProfiling=st.booleans(),
    percentageOfNodesToScore=st.integers(0, 100),
    podInitialBackoffSeconds=st.integers(1, 10),
    podMaxBackoffSeconds=st.integers(10, 2**63 - 1),
    profiles=_profiles | st.just([]) | st.tuples(_profile).map(list),
    extenders=st.lists(_extender, max_size=2),
    delayCacheUntilActive=st.booleans(),
).map(V1.__or__)

KNOWN = ALL_PLUGINS | {"Outside"}


@given(documents)
@example(V1 | {"extenders": [{"urlPrefix": " ", "weight": 3, "managedResources": []}]})
@example(V1 | {"extenders": [{"urlPrefix": "//[", "weight": 3, "managedResources": []}]})
@settings(max_examples=examples(80))
def test_what_is_written_reads_back_equal(document):
    with TemporaryDirectory() as directory:
        path = Path(directory)
        configuration = load(path, document, known_plugins=KNOWN)
        minimal = to_minimal_yaml(configuration)
        assert load(path, minimal, known_plugins=KNOWN) == configuration
        assert to_minimal_yaml(load(path, minimal, known_plugins=KNOWN)) == minimal
        if "REDACTED" not in (effective := to_effective_yaml(configuration)):
            assert load(path, effective, known_plugins=KNOWN) == configuration


@pytest.mark.parametrize("text", TRAPS)
def test_a_string_stays_a_string(tmp_path, text):
    content = V1 | {"clientConnection": {"kubeconfig": text}}
    configuration = load(tmp_path, content)
    assert configuration.client_connection.kubeconfig == text
    assert load(tmp_path, to_minimal_yaml(configuration)) == configuration


@given(st.text(max_size=20))
def test_strings_that_would_not_stay_strings_are_quoted(text):
    (line, *_) = to_minimal_yaml_of_name(text).split("kubeconfig: ", 1)[1].split("\n")
    assert line.startswith(('"', "'", "|", ">", "?")) or isinstance(resolve_scalar(line), str)


def to_minimal_yaml_of_name(text):
    with TemporaryDirectory() as directory:
        content = V1 | {"clientConnection": {"kubeconfig": text or "x"}}
        return to_minimal_yaml(load(Path(directory), content))


def test_only_what_differs_from_the_defaults_is_written(tmp_path):
    assert to_minimal_yaml(load(tmp_path, V1)) == (
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    )


def test_a_policy_is_written_as_v1(tmp_path):
    shape = [{"utilization": 0, "score": 100}, {"utilization": 100, "score": 0}]
    arguments = {"shape": shape, "resources": [{"name": "CPU", "weight": 3}, {"name": "a.com/b"}]}
    policy = POLICY | {
        "predicates": [{"name": "PodFitsResources"}],
        "priorities": [{"name": "Packed", "weight": 2, "argument": {"requestedToCapacityRatioArguments": arguments}}],
    }
    assert to_minimal_yaml(load(tmp_path, policy, scheduler_name="old")) == (
        """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: old
  plugins:
    preScore:
      disabled:
      - name: TaintToleration
    score:
      disabled:
      - name: TaintToleration
    multiPoint:
      enabled:
      - name: SchedulingGates
      - name: PrioritySort
      - name: NodeUnschedulable
      - name: TaintToleration
      - name: NodeResourcesFit
        weight: 2
      - name: DefaultPreemption
      - name: DefaultBinder
      disabled:
      - name: '*'
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: RequestedToCapacityRatio
        resources:
        - name: cpu
          weight: 3
        - name: a.com/b
          weight: 1
        requestedToCapacityRatio:
          shape:
          - utilization: 0
            score: 10
          - utilization: 100
            score: 0
"""
    )


def test_the_effective_configuration_names_every_field():
    effective = yaml.safe_load(to_effective_yaml(default_configuration()))
    assert list(effective) == [
        "apiVersion",
        "kind",
        "parallelism",
        "leaderElection",
        "clientConnection",
        "enableProfiling",
        "enableContentionProfiling",
        "podInitialBackoffSeconds",
        "podMaxBackoffSeconds",
        "delayCacheUntilActive",
        "profiles",
        "extenders",
    ]
    (profile,) = effective["profiles"]
    assert profile["schedulerName"] == "bayplan"
    assert {entry["name"] for entry in profile["plugins"]["multiPoint"]["enabled"]} == {
        entry.name for entry in UPSTREAM_DEFAULT_PLUGINS
    }
    fit_args = next(entry["args"] for entry in profile["pluginConfig"] if entry["name"] == "NodeResourcesFit")
    assert fit_args["scoringStrategy"] == {
        "type": "MostAllocated",
        "resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}],
    }


def test_shape_points_of_zero_are_written_out(tmp_path):
    shape = [{"utilization": 0, "score": 0}]
    strategy = {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": shape}}
    assert "- utilization: 0\n            score: 0" in to_minimal_yaml(load(tmp_path, fit(scoringStrategy=strategy)))


@pytest.mark.parametrize("weight", [{"weight": 0}, {}], ids=["0", "none"])
def test_an_added_preference_without_weight_is_written_with_weight_0(tmp_path, weight):
    preference = {"preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [weight | preference]}
    configuration = load(tmp_path, profile_with_args("NodeAffinity", {"addedAffinity": preferred}))
    for written in (to_effective_yaml(configuration), to_minimal_yaml(configuration)):
        config = yaml.safe_load(written)["profiles"][0]["pluginConfig"]
        args = next(each["args"] for each in config if each["name"] == "NodeAffinity")
        assert args["addedAffinity"] == {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 0} | preference]
        }


def test_key_material_is_hidden_where_it_is_only_shown(tmp_path):
    extender = {"urlPrefix": "x", "tlsConfig": {"keyData": "aHVudGVyMg=="}}
    configuration = load(tmp_path, V1 | {"extenders": [extender]})
    assert "aHVudGVyMg" not in to_effective_yaml(configuration)
    assert "aHVudGVyMg" in to_minimal_yaml(configuration)


def test_the_password_of_an_extender_is_hidden_where_it_is_only_shown(tmp_path):
    configuration = load(tmp_path, V1 | {"extenders": [{"urlPrefix": "https://me:hunter2@extender.example/x"}]})
    assert "urlPrefix: https://extender.example/x\n" in to_effective_yaml(configuration)
    assert "me:hunter2@" in to_minimal_yaml(configuration)


def test_arguments_of_a_plugin_that_is_not_enabled_are_kept(tmp_path):
    content = profile_with_args("NodeResourcesFit", {})
    content["profiles"][0]["plugins"] = {"multiPoint": {"disabled": [{"name": "NodeResourcesFit"}]}}
    configuration = load(tmp_path, content)
    assert "NodeResourcesFit" in configuration.profiles[0].plugin_config
    assert load(tmp_path, to_minimal_yaml(configuration)) == configuration
