"""What is different in a changed configuration, and what of that a running scheduler cannot take over."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, Final

from bayplan.config.errors import FieldError, child, forbidden, item, quote
from bayplan.config.settings import camel_case
from bayplan.config.types import PLUGIN_SET_KEYS, Profile, SchedulerConfiguration

_ONLY_AT_THE_START: Final = ("leader_election", "client_connection", "enable_profiling", "feature_gates")
"""These need a new start: the connections, the election and the port are made from them."""
_AT_THE_START: Final = "is read at the start only, and the scheduler has to be started again for it"


def changed_fields(before: SchedulerConfiguration, after: SchedulerConfiguration) -> list[str]:
    """Return the paths of the fields that are different, as they stand in the new file; profiles are told by name."""
    paths: list[str] = []
    for each in fields(SchedulerConfiguration):
        if each.name == "profiles":
            paths += _changed_in_profiles(before, after)
        else:
            paths += _changed(camel_case(each.name), getattr(before, each.name), getattr(after, each.name))
    return paths


def changed_profiles(before: SchedulerConfiguration, after: SchedulerConfiguration) -> frozenset[str]:
    """Return the schedulerNames of the profiles that decide differently; back-offs alone change none."""
    names = frozenset(profile.scheduler_name for profile in after.profiles)
    if (before.extenders, before.percentage_of_nodes_to_score) != (after.extenders, after.percentage_of_nodes_to_score):
        return names
    known = {profile.scheduler_name: profile for profile in before.profiles}
    return frozenset(each.scheduler_name for each in after.profiles if known.get(each.scheduler_name) != each)


def restart_errors(before: SchedulerConfiguration, after: SchedulerConfiguration) -> list[FieldError]:
    """Return an error for each difference that a running scheduler cannot take over; none if it can take over all.

    Which pods are watched follows from the schedulerNames of the profiles, so these stay as they are, too.
    """
    errors = [
        forbidden(path, _AT_THE_START)
        for name in _ONLY_AT_THE_START
        for path in _changed(camel_case(name), getattr(before, name), getattr(after, name))
    ]
    known = {profile.scheduler_name for profile in before.profiles}
    for index, profile in enumerate(after.profiles):
        if profile.scheduler_name not in known:
            path = child(item("profiles", index), "schedulerName")
            errors.append(forbidden(path, f"{quote(profile.scheduler_name)} is new; a profile's name {_AT_THE_START}"))
    missing = sorted(known - {profile.scheduler_name for profile in after.profiles})
    why = f"is missing; a profile's name {_AT_THE_START}"
    return [*errors, *(forbidden("profiles", f"{quote(name)} {why}") for name in missing)]


def _changed(path: str, before: Any, after: Any) -> Iterator[str]:  # noqa: ANN401  values of any field
    """The path of a field that is different, or those of its own fields."""
    if before == after:
        return
    inner = fields(before) if path in {"leaderElection", "clientConnection"} else ()
    if not inner:
        yield path
    for each in inner:
        yield from _changed(child(path, camel_case(each.name)), getattr(before, each.name), getattr(after, each.name))


def _changed_in_profiles(before: SchedulerConfiguration, after: SchedulerConfiguration) -> Iterator[str]:
    known = {profile.scheduler_name: profile for profile in before.profiles}
    for index, profile in enumerate(after.profiles):
        path, old = item("profiles", index), known.pop(profile.scheduler_name, None)
        if old is None:
            yield child(path, "schedulerName")
        elif old != profile:
            yield from _changed_in_profile(path, old, profile)
    if known:
        yield "profiles"


def _changed_in_profile(path: str, before: Profile, after: Profile) -> Iterator[str]:
    if before.percentage_of_nodes_to_score != after.percentage_of_nodes_to_score:
        yield child(path, "percentageOfNodesToScore")
    for attribute, key in PLUGIN_SET_KEYS.items():
        if getattr(before.plugins, attribute) != getattr(after.plugins, attribute):
            yield f"{path}.plugins.{key}"
    names = sorted(before.plugin_config.keys() | after.plugin_config.keys())
    for name in names:
        if before.plugin_config.get(name) != after.plugin_config.get(name):
            yield child(child(path, "pluginConfig"), name)
