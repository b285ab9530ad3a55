"""Extenders: decoding and validation (staging kube-scheduler/config/v1/types.go, validation.go validateExtenders)."""

from dataclasses import replace

from bayplan.config.connection_types import Extender, ExtenderManagedResource, ExtenderTLSConfig
from bayplan.config.errors import FieldError, child, invalid, item
from bayplan.config.fields import INT64, Fields, required_name
from bayplan.config.label_names import validate_extended_resource_name
from bayplan.config.types import NodeResourcesFitArgs, Profile, SchedulerConfiguration


def decode_extender(fields: Fields) -> Extender:
    """One extender, as it stands."""

    def resource(each: Fields) -> ExtenderManagedResource:
        return ExtenderManagedResource(required_name(each), each.boolean("ignoredByScheduler") or False)

    tls_config = None
    if fields.has("tlsConfig"):
        with fields.nested("tlsConfig") as block:
            tls_config = block.build(ExtenderTLSConfig)
    return fields.build(
        Extender,
        weight=fields.integer("weight", INT64) or 0,
        tls_config=tls_config,
        managed_resources=fields.objects("managedResources", resource),
    )


def validate_extenders(extenders: tuple[Extender, ...]) -> list[FieldError]:
    """Scoring needs a weight, one extender binds, and a resource is managed once."""
    errors = []
    managed = set()
    for index, extender in enumerate(extenders):
        path = item("extenders", index)
        if extender.prioritize_verb and extender.weight <= 0:
            errors.append(invalid(child(path, "weight"), extender.weight, "must have a positive weight applied to it"))
        for position, resource in enumerate(extender.managed_resources):
            name_path = child(item(child(path, "managedResources"), position), "name")
            if resource.name:
                errors += validate_extended_resource_name(resource.name, name_path)
            if resource.name in managed:
                errors.append(invalid(name_path, resource.name, "duplicate extender managed resource name"))
            managed.add(resource.name)
    binders = sum(bool(extender.bind_verb) for extender in extenders)
    if binders > 1:
        found = f"found {binders} extenders implementing bind"
        errors.append(invalid("extenders", found, "only one extender can implement bind"))
    return errors


def leave_to_extenders(configuration: SchedulerConfiguration) -> SchedulerConfiguration:
    """The configuration with NodeResourcesFit ignoring what extenders want it to (upstream: buildExtenders).

    Their resources take the place of `ignoredResources` in every profile, as in kube-scheduler.
    """
    ignored = tuple(
        resource.name
        for extender in configuration.extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    )
    if not ignored:
        return configuration

    def changed(profile: Profile) -> Profile:
        args = profile.plugin_config.get("NodeResourcesFit")
        if not isinstance(args, NodeResourcesFitArgs):
            args = NodeResourcesFitArgs()
        config = {**profile.plugin_config, "NodeResourcesFit": replace(args, ignored_resources=ignored)}
        return replace(profile, plugin_config=config)

    return replace(configuration, profiles=tuple(changed(profile) for profile in configuration.profiles))
