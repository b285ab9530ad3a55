"""KubeSchedulerConfiguration v1: decoding, defaults and validation (pkg/scheduler/apis/config/v1 and validation)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bayplan.config.errors import FieldError, child, duplicate, forbidden, invalid, item
from bayplan.config.extenders import decode_extender, validate_extenders
from bayplan.config.fields import Fields
from bayplan.config.process_settings import decode_process_settings
from bayplan.config.profiles import Support, decode_profile, validate_common_queue_sort
from bayplan.config.types import DEFAULT_SCHEDULER_NAME, Profile, SchedulerConfiguration


def decode_v1(document: Mapping[str, Any], support: Support, errors: list[FieldError]) -> SchedulerConfiguration:
    """The effective configuration; to be used only when `errors` stays empty."""
    with Fields(document, "", errors) as fields:
        fields.raw("apiVersion")
        fields.raw("kind")
        configuration = decode_process_settings(fields)
        parallelism = fields.integer("parallelism")
        if parallelism is not None and parallelism <= 0:
            errors.append(invalid("parallelism", parallelism, "should be an integer value greater than zero"))
        extenders = fields.objects("extenders", decode_extender)
        errors += validate_extenders(extenders)
        if extenders and not support.extenders:
            errors.append(forbidden("extenders", "extenders are not implemented in this version of bayplan"))
        return replace(
            configuration,
            parallelism=16 if parallelism is None else parallelism,
            profiles=_profiles(fields, support),
            extenders=extenders,
            delay_cache_until_active=fields.boolean("delayCacheUntilActive") or False,
        )


def _profiles(fields: Fields, support: Support) -> tuple[Profile, ...]:
    listed = fields.raw("profiles")
    default_name = DEFAULT_SCHEDULER_NAME if not isinstance(listed, list) or len(listed) <= 1 else ""
    profiles = fields.objects("profiles", lambda profile: decode_profile(profile, support, default_name))
    if not profiles:
        return (decode_profile(Fields(None, "", []), support, default_name),)
    names: set[str] = set()
    for index, profile in enumerate(profiles):
        if profile.scheduler_name in names and profile.scheduler_name:
            fields.errors.append(duplicate(child(item("profiles", index), "schedulerName"), profile.scheduler_name))
        names.add(profile.scheduler_name)
    fields.errors += validate_common_queue_sort(profiles)
    return profiles
