"""The feature gates that kube-scheduler 1.37 knows: stage, default, lock and what each depends on.

Source: pkg/features/kube_features.go, and the gates that client-go and component-base add to it, as they are at
version 1.37 with the minimum compatibility version 1.36, which is kube-scheduler's default; in the
JSON file of the same name.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

import msgspec

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


_TABLE: Final = msgspec.json.decode(Path(__file__).with_suffix(".json").read_bytes(), type=_Table)
KNOWN_FEATURE_GATES: Final[Mapping[str, FeatureSpec]] = _TABLE.gates
"""Every gate but `AllAlpha` and `AllBeta`, by name."""
DEPENDENCIES: Final[Mapping[str, tuple[str, ...]]] = _TABLE.dependencies
"""What a gate needs to be on when it is on, without the gates that nobody can switch off."""
