"""Short ways to write, load and complain about configuration files, and the parts of them that rules are about."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from bayplan.config.errors import ConfigurationError
from bayplan.config.load import load_configuration
from bayplan.config.plugin_sets import UPSTREAM_PLUGINS
from bayplan.config.types import SchedulerConfiguration

ALL_PLUGINS = UPSTREAM_PLUGINS
V1 = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
POLICY = {"apiVersion": "v1", "kind": "Policy"}
V1ALPHA1 = {"apiVersion": "kubescheduler.config.k8s.io/v1alpha1", "kind": "KubeSchedulerConfiguration"}


def write(directory: Path, content: str | bytes | dict[str, Any], name: str = "config.yaml") -> Path:
    path = directory / name
    if isinstance(content, dict):
        content = json.dumps(content)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def load(directory: Path, content: str | bytes | dict[str, Any], **options: Any) -> SchedulerConfiguration:
    return load_configuration(write(directory, content), **options)


def complaints(directory: Path, content: str | bytes | dict[str, Any], **options: Any) -> list[str]:
    """The lines of the error, without the file's name and the place in it."""
    with pytest.raises(ConfigurationError) as caught:
        load(directory, content, **options)
    prefix = re.compile(re.escape(str(directory / "config.yaml")) + r"(:\d+:\d+)?: |(?=--)")
    lines = str(caught.value).split("\n")
    assert all(prefix.match(line) for line in lines)
    return [prefix.sub("", line, count=1) for line in lines]


def nested(path: str, value: Any) -> dict[str, Any]:
    """The object that holds nothing but `value` at `path`, such as `a.b[0].c`."""
    for part in reversed(re.findall(r"[^.\[]+", path)):
        value = [value] if part == "0]" else {part: value}
    return value


def profile_with_args(plugin: str, args: Any) -> dict[str, Any]:
    return V1 | {"profiles": [{"pluginConfig": [{"name": plugin, "args": args}]}]}


def fit(**args: Any) -> dict[str, Any]:
    return profile_with_args("NodeResourcesFit", args)


ARGS = "profiles[0].pluginConfig[0].args"
SHAPE = f"{ARGS}.scoringStrategy.requestedToCapacityRatio.shape"
STRATEGIES = '"LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"'
NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def strategy(**fields):
    return fit(scoringStrategy=fields)


def ratio(*points):
    shape = [{"utilization": utilization, "score": score} for utilization, score in points]
    return strategy(type="RequestedToCapacityRatio", requestedToCapacityRatio={"shape": shape})


def election(**fields):
    return V1 | {"leaderElection": fields}


def plugins(**sets):
    return V1 | {"profiles": [{"plugins": sets}]}


def extenders(*listed):
    return V1 | {"extenders": [{"urlPrefix": "x"} | each for each in listed]}


def affinity(required=None, preferred=None):
    terms = {"nodeSelectorTerms": [{"matchExpressions": [each]} for each in required or ()]}
    block = {"requiredDuringSchedulingIgnoredDuringExecution": terms} if required else {}
    if preferred:
        block["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
    return profile_with_args("NodeAffinity", {"addedAffinity": block})


def spread(*constraints, **fields):
    return profile_with_args("PodTopologySpread", {"defaultConstraints": list(constraints), **fields})


ZONE = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
REQUIRED = f"{ARGS}.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
PREFERRED = f"{ARGS}.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]"
