"""`--feature-gates`: names, defaults, locks and texts of kube-scheduler."""

import pytest
from tests.config.configurations import ARGS, V1ALPHA1, complaints, load, profile_with_args

from bayplan.config.errors import ConfigurationError
from bayplan.config.feature_gates import (
    DEFAULT_FEATURE_GATES,
    DEPENDENCIES,
    KNOWN_FEATURE_GATES,
    SWITCHED,
    FeatureGates,
    Stage,
    parse_feature_gates,
)


def errors(*values: str) -> list[str]:
    with pytest.raises(ConfigurationError) as raised:
        parse_feature_gates(values)
    return [str(error) for error in raised.value.errors]


def test_nothing_given_is_the_default():
    assert parse_feature_gates([]) == parse_feature_gates([""]) == DEFAULT_FEATURE_GATES
    assert DEFAULT_FEATURE_GATES.enabled("StorageCapacityScoring")


def test_gates_are_separated_by_commas_and_the_flag_may_be_repeated():
    gates = parse_feature_gates(["StorageCapacityScoring=false, OpenAPIEnums=true,", "VolumeLimitScaling=false"])
    assert (gates.enabled("StorageCapacityScoring"), gates.enabled("VolumeLimitScaling")) == (False, False)


def test_the_last_value_counts():
    assert parse_feature_gates(["StorageCapacityScoring=false", "StorageCapacityScoring=true"]) == FeatureGates(
        (("StorageCapacityScoring", True),)
    )


@pytest.mark.parametrize(("text", "value"), [("1", True), ("T", True), ("True", True), ("0", False), ("FALSE", False)])
def test_values_are_what_go_reads_as_booleans(text, value):
    assert parse_feature_gates([f"StorageCapacityScoring={text}"]).enabled("StorageCapacityScoring") is value


def test_the_component_may_be_named():
    assert not parse_feature_gates(["kube:StorageCapacityScoring=false"]).enabled("StorageCapacityScoring")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("Nonsense=true", "unrecognized feature gate: Nonsense"),
        ("storageCapacityScoring=true", "unrecognized feature gate: storageCapacityScoring"),
        # It left with 1.37.
        ("SchedulerQueueingHints=true", "unrecognized feature gate: SchedulerQueueingHints"),
        (
            "DynamicResourceAllocation=false",
            "cannot set feature gate DynamicResourceAllocation to false, feature is locked to true",
        ),
        ("StorageCapacityScoring", "missing bool value for StorageCapacityScoring"),
        (
            "StorageCapacityScoring=yes",
            'invalid value of StorageCapacityScoring=yes, err: strconv.ParseBool: parsing "yes": invalid syntax',
        ),
        ("wardle:StorageCapacityScoring=true", "component not registered: wardle"),
        (
            "kube:StorageCapacityScoring=true,VolumeLimitScaling=true",
            "set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use",
        ),
        (
            "TopologyAwareWorkloadScheduling=true",
            "TopologyAwareWorkloadScheduling is enabled, but depends on features that are disabled: [GenericWorkload]",
        ),
    ],
)
def test_what_is_wrong_is_said_as_kube_scheduler_says_it(value, message):
    assert errors(value) == [f"--feature-gates: {message}"]


def test_everything_that_is_wrong_is_said_at_once():
    assert errors("A=true,NodeDeclaredFeatures=0", "B") == [
        "--feature-gates: missing bool value for B",
        "--feature-gates: unrecognized feature gate: A",
        "--feature-gates: cannot set feature gate NodeDeclaredFeatures to false, feature is locked to true",
    ]


def test_a_locked_gate_may_be_set_to_what_it_is():
    assert parse_feature_gates(["DynamicResourceAllocation=true"]).without_effect == ("DynamicResourceAllocation",)


def test_all_gates_of_a_stage_are_set_but_those_that_are_set_themselves():
    gates = parse_feature_gates(["StorageCapacityScoring=true,AllBeta=false"])
    assert (gates.enabled("StorageCapacityScoring"), gates.enabled("VolumeLimitScaling")) == (True, False)
    assert parse_feature_gates(["AllAlpha=true,AllBeta=true"]).enabled("VolumeLimitScaling")


def test_gates_of_a_stage_that_need_others_are_an_error_as_in_kube_scheduler():
    assert (
        "--feature-gates: TopologyAwareWorkloadScheduling is enabled, but depends on features that are disabled: "
        "[GenericWorkload]"
    ) in errors("AllAlpha=true")


def test_what_changes_nothing_is_told_apart():
    gates = parse_feature_gates(["OpportunisticBatching=false,StorageCapacityScoring=false,AllAlpha=false"])
    assert gates.without_effect == ("OpportunisticBatching",)


def test_a_gate_that_users_are_told_changes_nothing_cannot_be_asked_for():
    with pytest.raises(LookupError):
        DEFAULT_FEATURE_GATES.enabled("OpportunisticBatching")


SHAPE = [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]


@pytest.mark.parametrize(
    ("gate", "plugin", "args", "expected"),
    [
        (
            "DRASchedulerFilterTimeout",
            "DynamicResources",
            {"filterTimeout": "-5s"},
            ".filterTimeout: Forbidden: DRASchedulingFilterTimeout feature gate is disabled",
        ),
        (
            "DRADeviceBindingConditions",
            "DynamicResources",
            {"bindingTimeout": "1ms"},
            (
                ".bindingTimeout: Forbidden: "
                "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled"
            ),
        ),
        (
            "StorageCapacityScoring",
            "VolumeBinding",
            {"shape": SHAPE},
            (
                '.shape: Invalid value: [{"Utilization":0,"Score":10},{"Utilization":100,"Score":0}]: '
                "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
            ),
        ),
        (
            "StorageCapacityScoring",
            "VolumeBinding",
            {"shape": []},
            (
                ".shape: Invalid value: []: "
                "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
            ),
        ),
    ],
)
def test_an_argument_of_a_feature_that_is_off_is_an_error_as_in_kube_scheduler(tmp_path, gate, plugin, args, expected):
    off = parse_feature_gates([f"{gate}=false"])
    content = profile_with_args(plugin, args)
    assert complaints(tmp_path, content, gates=off) == [ARGS + expected]
    alpha1 = V1ALPHA1 | {"pluginConfig": [{"name": plugin, "args": args}]}
    assert complaints(tmp_path, alpha1, gates=off) == ["pluginConfig[0].args" + expected]
    assert load(tmp_path, profile_with_args(plugin, {}), gates=off).feature_gates == off


def test_arguments_of_other_features_are_checked_all_the_same(tmp_path):
    off = parse_feature_gates(["DRASchedulerFilterTimeout=false"])
    content = profile_with_args("DynamicResources", {"filterTimeout": "5s", "bindingTimeout": "1ms"})
    assert [line.split(": ")[1] for line in complaints(tmp_path, content, gates=off)] == ["Forbidden", "Invalid value"]


def test_every_gate_that_is_named_is_known():
    named = {*SWITCHED, *DEPENDENCIES, *(each for needed in DEPENDENCIES.values() for each in needed)}
    assert named <= KNOWN_FEATURE_GATES.keys()


def test_alpha_features_are_off_by_default():
    assert not any(spec.default for spec in KNOWN_FEATURE_GATES.values() if spec.stage is Stage.ALPHA)
