"""The effective configuration back to KubeSchedulerConfiguration v1 YAML.

Reading the text again gives an equal configuration, as long as the same plugins are known.
"""

import base64
from collections.abc import Mapping
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

import msgspec
import yaml

from bayplan.config.bounded_yaml import resolve_scalar
from bayplan.config.connections import Extender, ExtenderManagedResource, ExtenderTLSConfig
from bayplan.config.fields import format_duration
from bayplan.config.plugin_args import default_args
from bayplan.config.plugin_sets import DEFAULT_PLUGINS
from bayplan.config.settings import OWN, camel_case, settings_of
from bayplan.config.types import (
    API_VERSION,
    KIND,
    PLUGIN_SET_KEYS,
    NodeResourcesFitArgs,
    OpaqueArgs,
    PluginArgs,
    PluginEntry,
    Plugins,
    PluginSet,
    Profile,
    SchedulerConfiguration,
    ScoringStrategy,
    ScoringStrategyType,
    WeightedStrategy,
)

_REDACTED: Final = "REDACTED"
_SPARSE: Final = (Extender, ExtenderTLSConfig, ExtenderManagedResource)
"""Whose empty fields are left out, since most of them are empty."""


def to_minimal_yaml(configuration: SchedulerConfiguration) -> str:
    """Only what differs from the defaults; `bayplan config convert` prints it."""
    return _dump(_Writer(full=False).configuration(configuration))


def to_effective_yaml(configuration: SchedulerConfiguration) -> str:
    """Every field; keys in extenders' TLS blocks and passwords in their URLs are hidden. `config show` prints it."""
    return _dump(to_effective(configuration))


def to_effective(configuration: SchedulerConfiguration) -> dict[str, Any]:
    """The same as plain values."""
    return _Writer(full=True).configuration(configuration)


class _Writer:
    """Turns configurations into plain values in the order of the documentation."""

    def __init__(self, *, full: bool) -> None:
        self._full = full

    def configuration(self, configuration: SchedulerConfiguration) -> dict[str, Any]:
        # The default of contention profiling is what profiling is.
        default = SchedulerConfiguration(enable_contention_profiling=configuration.enable_profiling)
        plain = self._changes(configuration, default, skip=("profiles", "feature_gates"))
        only = len(configuration.profiles) == 1
        profiles = [self._profile(profile, only=only) for profile in configuration.profiles]
        if profiles != [{}]:
            extenders = {"extenders": plain.pop("extenders")} if "extenders" in plain else {}
            plain |= {"profiles": profiles, **extenders}
        return {"apiVersion": API_VERSION, "kind": KIND, **plain}

    def _profile(self, profile: Profile, *, only: bool) -> dict[str, Any]:
        # Only a single profile has a name by default.
        default = Profile() if only else Profile("")
        plain = self._changes(profile, default, skip=("plugins", "plugin_config"))
        if plugins := self._plugins(profile.plugins):
            plain["plugins"] = plugins
        if config := self._plugin_config(profile):
            plain["pluginConfig"] = config
        return plain

    def _plugins(self, plugins: Plugins) -> dict[str, Any]:
        defaults = Plugins() if self._full else DEFAULT_PLUGINS
        plain = {}
        for attribute, key in PLUGIN_SET_KEYS.items():
            own: PluginSet = getattr(plugins, attribute)
            disabled = {entry.name for entry in own.disabled}
            inherited = {entry for entry in getattr(defaults, attribute).enabled if not disabled & {entry.name, "*"}}
            enabled = [_entry(entry) for entry in own.enabled if entry not in inherited]
            block = {"enabled": enabled, "disabled": [_entry(entry) for entry in own.disabled]}
            if block := {name: entries for name, entries in block.items() if entries}:
                plain[key] = block
        return plain

    def _plugin_config(self, profile: Profile) -> list[dict[str, Any]]:
        enabled = {entry.name for attribute in PLUGIN_SET_KEYS for entry in getattr(profile.plugins, attribute).enabled}
        config = []
        for name, args in sorted(profile.plugin_config.items()):
            if not self._full and name in enabled and args == default_args(name):
                continue
            config.append({"name": name, "args": self._args(args)})
        return config

    def _args(self, args: PluginArgs) -> Any:  # noqa: ANN401 - a plain value
        if isinstance(args, OpaqueArgs):
            return dict(args.value)
        plain = self._changes(args, type(args)())
        if isinstance(args, NodeResourcesFitArgs):
            # One takes the place of the other.
            plain.pop("scoringStrategy" if args.scoring_strategies else "scoringStrategies", None)
        if own := {each.key: plain.pop(each.key) for each in settings_of(type(args)) if each.own and each.key in plain}:
            plain[OWN] = own
        return plain

    def _strategy(self, strategy: ScoringStrategy) -> dict[str, Any]:
        plain: dict[str, Any] = {"type": str(strategy.type), "resources": self._value(strategy.resources)}
        if strategy.type is ScoringStrategyType.REQUESTED_TO_CAPACITY_RATIO:
            plain["requestedToCapacityRatio"] = {"shape": self._value(strategy.shape)}
        return plain

    def _changes(self, value: Any, default: Any, skip: tuple[str, ...] = ()) -> dict[str, Any]:  # noqa: ANN401
        """The fields of a dataclass by key: all that are not None when writing in full, else those that differ."""
        plain = {}
        for each in dataclass_fields(value):
            own, other = getattr(value, each.name), getattr(default, each.name)
            if each.name in skip or own is None or (not self._full and own == other):
                continue
            key = camel_case(each.name)
            if isinstance(own, ScoringStrategy):
                plain[key] = self._strategy(own)
            elif is_dataclass(own) and is_dataclass(other):
                plain[key] = self._changes(own, other)
            else:
                plain[key] = self._value(own, value)
        return plain

    def _value(self, value: Any, owner: Any = None) -> Any:  # noqa: ANN401 - any value of a configuration
        if isinstance(value, tuple):
            return [self._value(each) for each in value]
        if isinstance(value, WeightedStrategy):
            return {"weight": value.weight, **self._strategy(value.strategy)}
        if is_dataclass(value):
            optional = isinstance(value, _SPARSE) and not self._full
            plain = {
                camel_case(each.name): self._value(own, value)
                for each in dataclass_fields(value)
                if (own := getattr(value, each.name)) is not None and (own or not optional)
            }
            return plain | {"urlPrefix": value.shown_url} if self._full and isinstance(value, Extender) else plain
        if isinstance(value, bytes):
            hidden = self._full and value and isinstance(owner, ExtenderTLSConfig)
            return _REDACTED if hidden else base64.b64encode(value).decode()
        if isinstance(value, msgspec.Struct):
            return msgspec.to_builtins(value)
        return _scalar(value)


def _scalar(value: Any) -> Any:  # noqa: ANN401 - any value of a configuration
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, StrEnum):
        return str(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _entry(entry: PluginEntry) -> dict[str, Any]:
    return {"name": entry.name, "weight": entry.weight} if entry.weight else {"name": entry.name}


class _Dumper(yaml.CSafeDumper):
    """Writes strings so that this package's reader, and kube-scheduler's, reads them as strings."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ANN401 - the overridden signature
        return True


def _represent_string(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    plain = isinstance(resolve_scalar(text), str) and text != "<<"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


_Dumper.add_representer(str, _represent_string)


def _dump(plain: Mapping[str, Any]) -> str:
    return yaml.dump(plain, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
