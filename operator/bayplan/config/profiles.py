"""One profile of a KubeSchedulerConfiguration: plugin sets, plugin arguments and the rules between profiles."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from bayplan.config.default_plugins import IMPLEMENTED_PLUGINS, REMOVED_PLUGINS, UPSTREAM_PLUGINS, default_plugins
from bayplan.config.errors import FieldError, duplicate, forbidden, invalid, item, required
from bayplan.config.fields import Fields, required_name
from bayplan.config.plugin_args import decode_args, default_args
from bayplan.config.plugin_sets import merge_plugins
from bayplan.config.process_settings import decode_percentage
from bayplan.config.types import (
    API_VERSION,
    PLUGIN_SET_KEYS,
    OpaqueArgs,
    PluginArgs,
    PluginEntry,
    Plugins,
    PluginSet,
    Profile,
)

_PLACEMENT_POINTS: Final = ("placementGenerate", "placementScore")


@dataclass(frozen=True, slots=True)
class Support:
    """What a configuration may use."""

    plugins: frozenset[str] = IMPLEMENTED_PLUGINS
    """Plugins that exist, from this project and from outside."""
    extenders: bool = False
    """Whether extenders are called."""


def decode_profile(fields: Fields, support: Support, default_name: str) -> Profile:
    """A profile merged with the default plugins; `default_name` stands in for a missing schedulerName unless empty."""
    name = fields.string("schedulerName")
    if name == "" or (not default_name and not fields.has("schedulerName")):
        fields.errors.append(required(fields.at("schedulerName")))
    percentage = decode_percentage(fields)
    plugins = default_plugins(support.plugins)
    if fields.has("plugins"):
        with fields.nested("plugins") as block:
            plugins = merge_plugins(plugins, _plugins(block, support))
    return Profile(
        scheduler_name=default_name if name is None else name,
        percentage_of_nodes_to_score=percentage,
        plugins=plugins,
        plugin_config=complete_plugin_config(plugins, _plugin_config(fields, support)),
    )


def complete_plugin_config(plugins: Plugins, given: Mapping[str, PluginArgs]) -> dict[str, PluginArgs]:
    """`given` with the default arguments of every enabled plugin that takes some and has none, sorted by name."""
    complete = dict(given)
    for attribute in PLUGIN_SET_KEYS:
        for entry in getattr(plugins, attribute).enabled:
            if entry.name not in complete and (args := default_args(entry.name)) is not None:
                complete[entry.name] = args
    return dict(sorted(complete.items()))


def unknown_plugin(path: str, name: str, support: Support) -> FieldError | None:
    """Why a plugin cannot be enabled or configured; None when it can."""
    if name in support.plugins:
        return None
    if name in REMOVED_PLUGINS:
        detail = f'was invalid in version "v1" (KubeSchedulerConfiguration is version "{API_VERSION}")'
    elif name in UPSTREAM_PLUGINS:
        detail = "is not implemented in this version of bayplan"
    else:
        detail = "does not exist"
    return invalid(path, name, detail)


def validate_common_queue_sort(profiles: tuple[Profile, ...]) -> list[FieldError]:
    """All profiles must order the queue alike: they share one."""
    first = profiles[0]
    canon = first.plugins.queue_sort
    errors = []
    if len(canon.enabled) > 1:
        path = "profiles[0].plugins.queueSort.Enabled"
        errors.append(invalid(path, len(canon.enabled), "only one queue sort plugin can be enabled"))
    name = canon.enabled[0].name if canon.enabled else None
    for index, profile in enumerate(profiles[1:], start=1):
        path = item("profiles", index)
        if profile.plugins.queue_sort != canon:
            shown = ", ".join(entry.name for entry in profile.plugins.queue_sort.enabled)
            errors.append(invalid(f"{path}.plugins.queueSort", shown, "must be the same for all profiles"))
        if name is not None and profile.plugin_config.get(name) != first.plugin_config.get(name):
            errors.append(invalid(f"{path}.pluginConfig.args", name, "queueSort must be the same for all profiles"))
    return errors


def _plugins(fields: Fields, support: Support) -> Plugins:
    sets = {}
    for attribute, key in PLUGIN_SET_KEYS.items():
        with fields.nested(key) as block:
            sets[attribute] = _plugin_set(block, support)
    for key in _PLACEMENT_POINTS:
        # kube-scheduler writes these out empty; no plugin of bayplan extends them.
        with fields.nested(key) as block:
            if _plugin_set(block, support).enabled:
                block.errors.append(forbidden(block.path, "is not implemented in this version of bayplan"))
    return Plugins(**sets)


def _plugin_set(fields: Fields, support: Support) -> PluginSet:
    def entry(each: Fields) -> PluginEntry:
        return PluginEntry(required_name(each), each.integer("weight") or 0)

    enabled = fields.objects("enabled", entry)
    seen = set()
    for index, plugin in enumerate(enabled):
        path = item(fields.at("enabled"), index)
        if plugin.name in seen:
            fields.errors.append(duplicate(path, plugin.name))
        elif plugin.name and (error := unknown_plugin(path, plugin.name, support)):
            fields.errors.append(error)
        seen.add(plugin.name)
    disabled = fields.objects("disabled", entry)
    for index, plugin in enumerate(disabled):
        if plugin.name and plugin.name not in support.plugins | UPSTREAM_PLUGINS | REMOVED_PLUGINS | {"*"}:
            fields.errors.append(invalid(item(fields.at("disabled"), index), plugin.name, "does not exist"))
    return PluginSet(enabled, tuple(PluginEntry(plugin.name) for plugin in disabled))


def _plugin_config(fields: Fields, support: Support) -> dict[str, PluginArgs]:
    config: dict[str, PluginArgs] = {}
    seen = set()

    def decode(each: Fields) -> None:
        name = required_name(each)
        if name in seen:
            each.errors.append(duplicate(each.path, name))
        elif name and (error := unknown_plugin(each.path, name, support)):
            each.errors.append(error)
            each.raw("args")
        seen.add(name)
        if (args := _args(name, each, support)) is not None:
            config.setdefault(name, args)

    fields.objects("pluginConfig", decode)
    return config


def _args(name: str, fields: Fields, support: Support) -> PluginArgs | None:
    if name not in UPSTREAM_PLUGINS:
        value = fields.raw("args")
        if value is not None and not isinstance(value, dict):
            fields.invalid("args", value, "must be an object")
            return None
        return OpaqueArgs(value or {}) if name in support.plugins else None
    with fields.nested("args") as args:
        _check_kind(name, args)
        try:
            return decode_args(name, args)
        except KeyError:
            if extra := set(args.keys()) - {"apiVersion", "kind"}:
                fields.errors.append(forbidden(args.path, f"{name} takes no arguments"))
                for key in extra:
                    args.raw(key)
            return None


def _check_kind(name: str, args: Fields) -> None:
    version, kind = args.string("apiVersion"), args.string("kind")
    if version and version != API_VERSION:
        args.invalid("apiVersion", version, f'no kind "{name}Args" is registered for this version')
    if kind and kind != f"{name}Args":
        detail = f"args for plugin {name} were not of type {name}Args.kubescheduler.config.k8s.io, got {kind}"
        args.invalid("kind", kind, detail)
