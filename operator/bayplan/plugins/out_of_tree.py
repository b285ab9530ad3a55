"""Plugins from other Python distributions, found by the entry point group `bayplan.plugins`."""

import copy
import inspect
from collections.abc import Callable, Collection
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, cast

from bayplan.config.errors import ConfigurationError, FieldError, child, item, quote, quote_unprintable
from bayplan.config.plugin_sets import UPSTREAM_PLUGINS
from bayplan.config.types import EXTENSION_POINTS, PLUGIN_SET_KEYS, OpaqueArgs, Profile, SchedulerConfiguration
from bayplan.framework.cluster_event import EventRegistration
from bayplan.framework.interface import Plugin
from bayplan.framework.status import Normalize, Reads, Traits
from bayplan.plugins.checked_plugin import METHODS, CheckedPlugin, traits_of

GROUP: Final = "bayplan.plugins"
"""Entry points of this group are plugins: the name is the plugin's, the value a class or factory `(args, handle)`."""

# The queue is sorted and writes are made by the scheduler itself: a plugin that raised there could stop it.
_RESERVED_POINTS: Final = frozenset(("queue_sort", "pre_bind", "bind"))
_OPTIONAL: Final = ("sign_pod", "events_to_register")

_Factory = Callable[[Any, Any], object]


def extends(plugin: type | Plugin, point: str) -> bool:
    """Whether a plugin (class or instance) has the method of an extension point."""
    return callable(getattr(plugin, "sort_key" if point == "queue_sort" else point, None))


def installed_plugins() -> frozenset[str]:
    """The names distributions offer plugins under; imports none of them."""
    return frozenset(each.name for each in entry_points(group=GROUP))


def load_out_of_tree(
    configuration: SchedulerConfiguration, in_tree: Collection[str], handle: object
) -> dict[str, dict[str, Plugin]]:
    """Import, make and check the plugins from outside that the configuration enables, by profile and name.

    Raises:
        ConfigurationError: each error names the distribution, its entry point and what is wrong.
    """
    offered: dict[str, list[EntryPoint]] = {}
    for each in entry_points(group=GROUP):
        offered.setdefault(each.name, []).append(each)
    errors: list[FieldError] = []
    by_profile: dict[str, dict[str, Plugin]] = {}
    factories: dict[str, _Factory | str] = {}
    for index, profile in enumerate(configuration.profiles):
        made = by_profile.setdefault(profile.scheduler_name, {})
        for name in _enabled(profile):
            if name not in offered:
                continue
            if name not in factories:
                factories[name] = _factory(offered[name], in_tree)
            outcome = _make(name, factories[name], profile, handle)
            if isinstance(outcome, str):
                path = child(item("profiles", index), "plugins")
                errors.append(FieldError(path, f"plugin {quote(name)}: {_origin(offered[name])}: {outcome}"))
            else:
                made[name] = outcome
    if errors:
        raise ConfigurationError(errors)
    return by_profile


def _enabled(profile: Profile) -> list[str]:
    return sorted({entry.name for key in PLUGIN_SET_KEYS for entry in getattr(profile.plugins, key).enabled})


def _origin(offers: list[EntryPoint]) -> str:
    return " and ".join(
        f"distribution {quote('?' if each.dist is None else each.dist.name)}, "
        f"entry point {quote(f'{each.name} = {each.value}')}"
        for each in offers
    )


def _factory(offers: list[EntryPoint], in_tree: Collection[str]) -> _Factory | str:
    """What makes the plugin, or what is wrong with how it is offered."""
    entry_point = offers[0]
    if entry_point.name in in_tree:
        return "the name is taken by a plugin of bayplan"
    if entry_point.name in UPSTREAM_PLUGINS:
        return "the name is taken by a plugin of kube-scheduler"
    if len(offers) > 1:
        return "the name is offered more than once"
    try:
        factory = entry_point.load()
    except Exception as error:  # noqa: BLE001  whatever a foreign module raises is what is wrong with it
        return f"import failed: {_told(error)}"
    if not callable(factory):
        return f"must be a class or a function, not {type(factory).__name__}"
    return factory  # type: ignore[no-any-return]  # any callable; its parameters are checked where it is called


def _make(name: str, factory: _Factory | str, profile: Profile, handle: object) -> Plugin | str:
    if isinstance(factory, str):
        return factory
    if problem := _call_problem(factory, ("args", "handle"), "the factory"):
        return problem
    given = profile.plugin_config.get(name)
    args = copy.deepcopy(dict(given.value)) if isinstance(given, OpaqueArgs) else None
    try:
        plugin = factory(args, handle)
    except Exception as error:  # noqa: BLE001  as above
        return f"the factory failed: {_told(error)}"
    try:
        problems = _problems(plugin, name)
        return "; ".join(problems) if problems else cast("Plugin", CheckedPlugin(plugin))
    except Exception as error:  # noqa: BLE001  properties of a foreign object may raise
        return f"cannot be looked at: {_told(error)}"


def _problems(plugin: object, name: str) -> list[str]:
    """What keeps an object from being the plugin `name`."""
    found = getattr(plugin, "name", None)
    if not isinstance(found, str):
        return [f"{type(plugin).__name__} has no name"]
    if found != name:
        return [f"calls itself {quote(found)}"]
    points = [point for point in EXTENSION_POINTS if extends(cast("Plugin", plugin), point)]
    if not points:
        return ["extends no extension point"]
    problems = [
        f"extends {EXTENSION_POINTS[each]}, which is for plugins of bayplan only"
        for each in points
        if each in _RESERVED_POINTS
    ]
    wanted = [point for point in points if point not in _RESERVED_POINTS]
    wanted += [partner for point in wanted if (partner := METHODS[point].partner)]
    wanted += [each for each in _OPTIONAL if hasattr(plugin, each)]
    problems += _attribute_problems(plugin, points)
    if traits_of(plugin).normalize is Normalize.CUSTOM:
        wanted.append("normalize_score")
    for method in wanted:
        if problem := _call_problem(getattr(plugin, method, None), METHODS[method].parameters, method):
            problems.append(problem)
    return problems or _registration_problems(plugin)


def _attribute_problems(plugin: object, points: list[str]) -> list[str]:
    traits = getattr(plugin, "traits", None)
    if traits is not None:
        return [] if isinstance(traits, Traits) else [f"traits must be Traits, not {quote(repr(traits))}"]
    required: list[tuple[str, str, type]] = [("normalize", "score", Normalize)] if "score" in points else []
    required += [("reads", point, Reads) for point in ("filter", "score") if point in points][:1]
    problems = []
    for attribute, point, kind in required:
        value = getattr(plugin, attribute, None)
        if value is None:
            problems.append(f"extends {point} but has no {attribute}")
        elif not isinstance(value, kind):
            problems.append(f"{attribute} must be a {kind.__name__}, not {quote(repr(value))}")
    return problems


def _registration_problems(plugin: object) -> list[str]:
    events_to_register = getattr(plugin, "events_to_register", None)
    if events_to_register is None:
        return []
    try:
        registrations = list(events_to_register())
    except Exception as error:  # noqa: BLE001  as above
        return [f"events_to_register failed: {_told(error)}"]
    if not all(isinstance(each, EventRegistration) for each in registrations):
        return ["events_to_register must answer EventRegistrations"]
    return []


def _call_problem(function: object, parameters: tuple[str, ...], what: str) -> str | None:
    """Why a function cannot be called with positional `parameters`; None when it can."""
    shown = f"({', '.join(parameters)})"
    if not callable(function):
        return f"{what}{shown} is missing"
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        return f"{what} must not be async"
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        # Compiled code may have none; it is then found out at the first call.
        return None
    try:
        signature.bind(*parameters)
    except TypeError:
        return f"{what} must take {shown}, but takes {quote_unprintable(str(signature))}"
    return None


def _told(error: Exception) -> str:
    return quote_unprintable(f"{type(error).__name__}: {error}")
