"""`--feature-gates`: kube-scheduler's switches, as far as they change what bayplan does.

The table of the gates that kube-scheduler 1.37 knows is known_feature_gates.json: stage, default, lock and what each
depends on. Source: pkg/features/kube_features.go, and the gates that client-go and component-base add to it, as they
are at version 1.37 with the minimum compatibility version 1.36, which is kube-scheduler's default.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec

from bayplan.config.errors import ConfigurationError, FieldError, quote, quote_unprintable

FLAG: Final = "--feature-gates"
KUBERNETES: Final = "1.37"
"""The version of kube-scheduler that bayplan behaves as."""


class Stage(StrEnum):
    """How far a feature has come."""

    ALPHA = "ALPHA"
    BETA = "BETA"
    GA = "GA"
    DEPRECATED = "DEPRECATED"


@dataclass(frozen=True, slots=True)
class FeatureSpec:
    """What is known of a gate."""

    stage: Stage
    """`AllAlpha` and `AllBeta` go by it."""
    default: bool
    """Its value when nobody sets it."""
    locked: bool = False
    """Whether it keeps its default."""


class _Table(msgspec.Struct):
    gates: dict[str, FeatureSpec]
    dependencies: dict[str, tuple[str, ...]]


_TABLE: Final = msgspec.json.decode(Path(__file__).with_name("known_feature_gates.json").read_bytes(), type=_Table)
KNOWN_FEATURE_GATES: Final[Mapping[str, FeatureSpec]] = _TABLE.gates
"""Every gate but `AllAlpha` and `AllBeta`, by name."""
DEPENDENCIES: Final[Mapping[str, tuple[str, ...]]] = _TABLE.dependencies
"""What a gate needs to be on when it is on, without the gates that nobody can switch off."""

SWITCHED: Final = frozenset(
    (
        "ComponentFlagz",
        "ComponentStatusz",
        "DRADeviceBindingConditions",
        "DRASchedulerFilterTimeout",
        "MatchLabelKeysInPodTopologySpread",
        "NominatedNodeNameForExpectation",
        "StorageCapacityScoring",
        "TaintTolerationComparisonOperators",
        "TopologyAwareWorkloadScheduling",
        "VolumeLimitScaling",
    )
)
"""The gates that bayplan looks at. All others that kube-scheduler has are accepted and change nothing."""

_OF_A_STAGE: Final = {"AllAlpha": Stage.ALPHA, "AllBeta": Stage.BETA}
_COMPONENT: Final = "kube"
BOOLEANS: Final = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}
"""What Go's strconv.ParseBool reads."""


@dataclass(frozen=True, slots=True)
class FeatureGates:
    """Which features are on; what is not `given` has kube-scheduler's default."""

    given: tuple[tuple[str, bool], ...] = ()
    """The gates that were set, each once, by name."""

    def enabled(self, name: str) -> bool:
        """Tell whether a feature is on.

        Raises:
            LookupError: the gate is none of `SWITCHED`, so users were told that it changes nothing.
        """
        if name not in SWITCHED:
            raise LookupError(name)
        return _is_on(name, dict(self.given))

    def switched(self) -> Iterator[tuple[str, Stage, bool]]:
        """Give each gate that bayplan looks at with its stage and whether it is on, in alphabetical order."""
        for name in sorted(SWITCHED):
            yield name, KNOWN_FEATURE_GATES[name].stage, self.enabled(name)

    @property
    def without_effect(self) -> tuple[str, ...]:
        """The gates that were set and change nothing, in alphabetical order."""
        return tuple(name for name, _ in self.given if name not in SWITCHED and name not in _OF_A_STAGE)


DEFAULT_FEATURE_GATES: Final = FeatureGates()
"""What kube-scheduler does when no gate is set."""


def parse_feature_gates(values: Sequence[str]) -> FeatureGates:
    """Read what `--feature-gates` was given, each time it was: `Name=true,Other=false`, by the rules of kube-scheduler.

    A name may have the prefix `kube:`; the last of several values counts. `AllAlpha` and `AllBeta` set all gates of
    their stage that are not set by themselves.

    Raises:
        ConfigurationError: with everything that is wrong, in kube-scheduler's words (component-base: featuregate/
            feature_gate.go and compatibility/registry.go).
    """
    given: dict[str, bool] = {}
    problems: list[str] = []
    prefixes: set[str] = set()
    for pair in (pair for value in values for pair in value.split(",") if pair):
        component, colon, assignment = pair.partition(":") if ":" in pair else ("", "", pair)
        prefixes.add(component.strip() if colon else "")
        name, equals, text = (part.strip() for part in assignment.partition("="))
        if colon and component.strip() not in ("", _COMPONENT):
            problems.append(f"component not registered: {quote_unprintable(component.strip())}")
        elif not equals:
            problems.append(f"missing bool value for {quote_unprintable(name)}")
        elif text not in BOOLEANS:
            shown = quote_unprintable(f"{name}={text}")
            problems.append(f"invalid value of {shown}, err: strconv.ParseBool: parsing {quote(text)}: invalid syntax")
        else:
            given[name] = BOOLEANS[text]
    if prefixes >= {"", _COMPONENT}:
        problems.append("set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use")
    problems += [problem for name, value in given.items() if (problem := _why_not(name, value=value))]
    if not problems:
        problems += _unmet_dependencies(given)
    if problems:
        raise ConfigurationError(FieldError(FLAG, problem) for problem in problems)
    return FeatureGates(tuple(sorted(given.items())))


def _why_not(name: str, *, value: bool) -> str:
    """Return why a gate cannot be set, "" if it can."""
    if name in _OF_A_STAGE:
        return ""
    spec = KNOWN_FEATURE_GATES.get(name)
    if spec is None:
        return f"unrecognized feature gate: {quote_unprintable(name)}"
    if spec.locked and value is not spec.default:
        wanted, default = str(value).lower(), str(spec.default).lower()
        return f"cannot set feature gate {name} to {wanted}, feature is locked to {default}"
    return ""


def _unmet_dependencies(given: Mapping[str, bool]) -> list[str]:
    return [
        f"{name} is enabled, but depends on features that are disabled: [{' '.join(off)}]"
        for name, needed in DEPENDENCIES.items()
        if _is_on(name, given) and (off := [each for each in needed if not _is_on(each, given)])
    ]


def _is_on(name: str, given: Mapping[str, bool]) -> bool:
    if name in given:
        return given[name]
    spec = KNOWN_FEATURE_GATES[name]
    for gate, stage in _OF_A_STAGE.items():
        if gate in given and spec.stage is stage:
            return given[gate]
    return spec.default
