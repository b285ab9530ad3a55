"""KubeSchedulerConfiguration v1: decoding, defaults and validation (pkg/scheduler/apis/config/v1 and validation)."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from bayplan.config.connections import (
    ClientConnection,
    LeaderElection,
    decode_extender,
    decode_leader_election,
    validate_extenders,
)
from bayplan.config.errors import FieldError, child, did_you_mean, duplicate, invalid, invalid_whole, item, repeated
from bayplan.config.feature_gates import DEFAULT_FEATURE_GATES
from bayplan.config.fields import Fields, Reading, required_name
from bayplan.config.plugin_args import TAKE_ARGUMENTS, decode_args, default_args
from bayplan.config.plugin_sets import (
    COSCHEDULING,
    DEFAULT_PLUGINS,
    FORMER_PLUGINS,
    OWN_PLUGINS,
    REMOVED_PLUGINS,
    UPSTREAM_PLUGINS,
    merge_plugins,
)
from bayplan.config.types import (
    API_VERSION,
    DEFAULT_SCHEDULER_NAME,
    PLUGIN_SET_KEYS,
    OpaqueArgs,
    PluginArgs,
    PluginEntry,
    Plugins,
    PluginSet,
    Profile,
    SchedulerConfiguration,
)

POD_GROUP_POINTS: Final = ("placementGenerate", "placementScore", "podGroupPostFilter")
"""Extension points for pods that are scheduled together: there in kube-scheduler's files, and empty here."""


def decode_v1(fields: Fields) -> SchedulerConfiguration:
    """The effective configuration; to be used only when there are no errors."""
    configuration = decode_process_settings(fields)
    extenders = fields.objects("extenders", decode_extender)
    fields.errors += validate_extenders(extenders)
    return replace(configuration, profiles=_profiles(fields), extenders=extenders)


def decode_file(
    decode: Callable[[Fields], SchedulerConfiguration], document: Mapping[str, Any], reading: Reading
) -> SchedulerConfiguration:
    """What a whole file says, by its decoder; fields that this does not read are errors."""
    with Fields(document, "", reading) as fields:
        fields.raw("apiVersion")
        fields.raw("kind")
        return decode(fields)


def _profiles(fields: Fields) -> tuple[Profile, ...]:
    listed = fields.raw("profiles")
    default_name = DEFAULT_SCHEDULER_NAME if not isinstance(listed, list) or len(listed) <= 1 else ""
    profiles = fields.objects("profiles", lambda profile: _profile(profile, default_name))
    if not profiles:
        return (replace(make_profile(None, {}), scheduler_name=default_name),)
    # kube-scheduler shows the path of the first one as `{}`, which says nothing.
    names = (
        (child(item("profiles", index), "schedulerName"), each.scheduler_name) for index, each in enumerate(profiles)
    )
    fields.errors += repeated((path, name) for path, name in names if name)
    fields.errors += validate_common_queue_sort(profiles)
    return profiles


def _profile(fields: Fields, default_name: str) -> Profile:
    """A profile merged with the default plugins; `default_name` stands in for a missing schedulerName unless empty."""
    name = fields.string("schedulerName")
    if name == "" or (not default_name and not fields.has("schedulerName")):
        fields.require("schedulerName")
    profile = make_profile(fields.optional("plugins", _plugins), decode_plugin_config(fields))
    shown = default_name if name is None else name
    return fields.build(Profile, scheduler_name=shown, plugins=profile.plugins, plugin_config=profile.plugin_config)


def make_profile(custom: Plugins | None, given: Mapping[str, PluginArgs]) -> Profile:
    """A profile of the default plugins merged with `custom` ones, and their arguments, of which some are `given`."""
    plugins = DEFAULT_PLUGINS if custom is None else merge_plugins(DEFAULT_PLUGINS, custom)
    return Profile(plugins=plugins, plugin_config=complete_plugin_config(plugins, given))


def complete_plugin_config(plugins: Plugins, given: Mapping[str, PluginArgs]) -> dict[str, PluginArgs]:
    """`given` with the default arguments of every enabled plugin that takes some and has none, sorted by name."""
    complete = dict(given)
    for attribute in PLUGIN_SET_KEYS:
        for entry in getattr(plugins, attribute).enabled:
            if entry.name not in complete and (args := default_args(entry.name)) is not None:
                complete[entry.name] = args
    return dict(sorted(complete.items()))


def _unknown_plugin(path: str, name: str, fields: Fields) -> list[FieldError]:
    """Why a plugin cannot be enabled or configured; nothing when it can."""
    if name in fields.reading.known:
        return []
    if name in REMOVED_PLUGINS:
        detail = f'was invalid in version "v1" (KubeSchedulerConfiguration is version "{API_VERSION}")'
    elif name in UPSTREAM_PLUGINS:
        detail = "is not implemented in this version of bayplan"
    else:
        detail = _not_existing(name, fields)
    return [invalid(path, name, detail)]


def _not_existing(name: str, fields: Fields) -> str:
    if name in FORMER_PLUGINS:
        return f"does not exist any more: {FORMER_PLUGINS[name]}"
    if name == COSCHEDULING:
        return "does not exist: pods of a PodGroup are placed together without a plugin"
    return f"does not exist{did_you_mean(name, fields.reading.known, fields.errors)}"


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
            shown = _as_kube_scheduler_shows(profile.plugins.queue_sort)
            errors.append(invalid_whole(f"{path}.plugins.queueSort", shown, "must be the same for all profiles"))
        if name is not None and profile.plugin_config.get(name) != first.plugin_config.get(name):
            errors.append(invalid(f"{path}.pluginConfig.args", name, "queueSort must be the same for all profiles"))
    return errors


def _as_kube_scheduler_shows(plugins: PluginSet) -> dict[str, object]:
    return {
        name: [{"Name": entry.name, "Weight": entry.weight} for entry in entries] or None
        for name, entries in (("Enabled", plugins.enabled), ("Disabled", plugins.disabled))
    }


def _plugins(fields: Fields) -> Plugins:
    sets = {}
    known = fields.reading.known | UPSTREAM_PLUGINS | REMOVED_PLUGINS | {"*"}
    for attribute, key in PLUGIN_SET_KEYS.items():
        with fields.nested(key) as block:
            sets[attribute] = decode_plugin_set(block)
            for index, name in enumerate(plugin.name for plugin in sets[attribute].disabled):
                if name and name not in known:
                    block.errors.append(invalid(item(block.at("disabled"), index), name, _not_existing(name, block)))
    for key in POD_GROUP_POINTS:
        # kube-scheduler writes these out empty; they are for pods that are scheduled together.
        with fields.nested(key) as block:
            if decode_plugin_set(block).enabled:
                fields.forbid(key, "is not implemented in this version of bayplan")
    return Plugins(**sets)


def decode_plugin_set(fields: Fields) -> PluginSet:
    """What an extension point enables and disables; what it enables must be known."""

    def entry(each: Fields) -> PluginEntry:
        name = each.string("name")
        if not name and (name is not None or not each.has("name")):
            each.errors.append(invalid(each.path, "", "does not exist"))
        return each.build(PluginEntry, name=name or "")

    enabled = fields.objects("enabled", entry)
    seen = set()
    for index, plugin in enumerate(enabled):
        path = item(fields.at("enabled"), index)
        if plugin.name in seen:
            fields.errors.append(duplicate(path, plugin.name))
        elif plugin.name:
            fields.errors += _unknown_plugin(path, plugin.name, fields)
        seen.add(plugin.name)
    disabled = fields.objects("disabled", entry)
    return PluginSet(enabled, tuple(PluginEntry(plugin.name) for plugin in disabled))


def decode_plugin_config(fields: Fields) -> dict[str, PluginArgs]:
    """The arguments in `pluginConfig` by plugin; each plugin must be known and stand there once."""
    config: dict[str, PluginArgs] = {}
    seen = set()

    def decode(each: Fields) -> None:
        name = required_name(each)
        if name in seen:
            each.errors.append(duplicate(each.path, name))
        elif name and (unknown := _unknown_plugin(each.path, name, each)):
            each.errors += unknown
            each.raw("args")
        seen.add(name)
        if (args := _args(name, each)) is not None:
            config.setdefault(name, args)

    fields.objects("pluginConfig", decode)
    return config


def _args(name: str, fields: Fields) -> PluginArgs | None:
    if name not in UPSTREAM_PLUGINS | OWN_PLUGINS:
        value = fields.raw("args")
        if value is not None and not isinstance(value, dict):
            fields.invalid("args", value, "must be an object")
            return None
        return OpaqueArgs(value or {}) if name in fields.reading.known else None
    with fields.nested("args") as args:
        _check_kind(name, args)
        if name in TAKE_ARGUMENTS:
            return decode_args(name, args)
        if extra := set(args.keys()) - {"apiVersion", "kind"}:
            fields.forbid("args", f"{name} takes no arguments")
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


def decode_process_settings(
    fields: Fields,
    decode_election: Callable[[Fields], LeaderElection] = decode_leader_election,
    **fixed: Any,  # noqa: ANN401 - values of any field
) -> SchedulerConfiguration:
    """One default profile and all that `fields` says of the process, but for what is `fixed` in its version."""
    with fields.nested("clientConnection") as block:
        # A rate of 0 means the default.
        client_connection = block.build(ClientConnection, zero_counts=False)
    with fields.nested("leaderElection") as block:
        leader_election = decode_election(block)
    settings = fields.build(
        SchedulerConfiguration,
        leader_election=leader_election,
        client_connection=client_connection,
        profiles=(Profile(),),
        extenders=(),
        feature_gates=DEFAULT_FEATURE_GATES,
        **fixed,
    )
    if (longest := settings.pod_max_backoff_seconds) < settings.pod_initial_backoff_seconds:
        detail = "must be greater than or equal to PodInitialBackoffSeconds"
        fields.invalid("podMaxBackoffSeconds", longest, detail)
    if not fields.has("enableContentionProfiling"):
        settings = replace(settings, enable_contention_profiling=settings.enable_profiling)
    return settings
