"""What a configuration says that is allowed and hardly meant: `bayplan config check` warns of it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from bayplan.config.errors import FieldWarning, item, quote
from bayplan.config.fields import Fields
from bayplan.config.plugin_sets import OWN_PLUGINS, UPSTREAM_DEFAULT_PLUGINS, Extends
from bayplan.config.settings import OWN
from bayplan.config.types import API_VERSION, EXTENSION_POINTS, KIND, Profile

_FIT: Final = "NodeResourcesFit"
_NEEDS_RESOURCES: Final[Mapping[object, str]] = {
    "NodeHeadroom": "no resources to keep",
    "ScarceResourceAvoidance": "no resources to avoid",
}
"""By plugin that does nothing without resources, what to say of that."""
_NATIVE: Final = frozenset(("cpu", "memory", "ephemeral-storage", "pods"))
_MULTI_POINT: Final = "multiPoint"
_COUNTS_AS_ONE: Final = "a weight of 0 counts as 1; to leave it out, take it out of the list"
_PREPARED: Final[Mapping[str, tuple[str, frozenset[str]]]] = {
    "preFilter": (
        "filter",
        frozenset(
            (
                "DynamicResources",
                "InterPodAffinity",
                "NodeDeclaredFeatures",
                "NodePorts",
                "NodeResourcesFit",
                "PodTopologySpread",
                "VolumeBinding",
                "VolumeRestrictions",
            )
        ),
    ),
    "preScore": ("score", frozenset(("InterPodAffinity", "PodTopologySpread", "TaintToleration"))),
}
"""By extension point the one that is prepared there, and the plugins that fail every pod unless it was."""
_WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    "parallelism": "has no effect: bayplan looks at all nodes at once",
    "enableContentionProfiling": "has no effect: there is no contention to profile",
    "delayCacheUntilActive": "has no effect: a standby always keeps its caches warm",
    "clientConnection.acceptContentTypes": "has no effect: bayplan speaks JSON",
    "clientConnection.contentType": "has no effect: bayplan speaks JSON",
}


def configuration_warnings(
    document: Mapping[str, Any], extends: Extends, *, convertible: bool = True
) -> Iterator[FieldWarning]:
    """Yield what is to be warned of in a decoded file; what has an error is passed over.

    That is a format of the past, fields without effect, weights of 0, addresses that are none, plugins that are enabled
    twice, where they do nothing or without what prepares them, arguments of plugins that do not run, and names of
    resources without a domain. `extends` tells at which points plugins run. What has errors cannot be converted, and is
    not advised to be.
    """
    kind = document.get("kind")
    if (document.get("apiVersion"), kind) != (API_VERSION, KIND):
        if kind in {KIND, "Policy"} and convertible:
            advice = f"is deprecated: `bayplan config convert` prints the same as {API_VERSION}"
            yield FieldWarning("apiVersion", advice)
        return
    top = Fields(document)
    for path, message in _WITHOUT_EFFECT.items():
        *parents, name = path.split(".")
        block = top
        for parent in parents:
            block = block.nested(parent)
        if block.has(name):
            yield FieldWarning(path, message)
    yield from _of_election(top.nested("leaderElection"))
    for profile in _objects(top, "profiles"):
        yield from _of_plugins(profile, extends)
        for each in _objects(profile, "pluginConfig"):
            yield from _of_arguments(each)
    for extender in _objects(top, "extenders"):
        yield from _of_extender(extender)


def spreading_profiles(document: Mapping[str, Any], profiles: Sequence[Profile]) -> Iterator[str]:
    """Yield the schedulerNames of the profiles that spread pods though the file names no strategy for them.

    `profiles` are those that the decoded file stands for.
    """
    top = Fields(document)
    if any(each.raw("name") == "LeastRequestedPriority" for each in _objects(top, "priorities")):
        return
    # Before there were profiles, the arguments of the only one stood at the top.
    for profile, block in zip(profiles, _objects(top, "profiles") or [top], strict=True):
        names_one = any(
            each.raw("name") == _FIT and each.nested("args").has("scoringStrategy")
            for each in _objects(block, "pluginConfig")
        )
        scores = profile.plugins.score
        is_off = {each.name for each in scores.disabled} & {_FIT, "*"} and _FIT not in {
            each.name for each in scores.enabled
        }
        if _FIT in profile.plugin_config and profile.fit.spreads and not names_one and not is_off:
            yield profile.scheduler_name


def _of_extender(extender: Fields) -> Iterator[FieldWarning]:
    url = extender.raw("urlPrefix")
    if extender.raw("filterVerb") and not (isinstance(url, str) and url.startswith(("http://", "https://"))):
        path = extender.at("urlPrefix") if url else extender.path
        yield FieldWarning(path, "its urlPrefix is no http:// or https:// address: every call fails")
    if extender.raw("weight") and not extender.raw("prioritizeVerb"):
        yield FieldWarning(extender.at("weight"), "has no effect without a prioritizeVerb")


def _of_election(election: Fields) -> Iterator[FieldWarning]:
    if election.raw("leaderElect") is False:
        for name in election.keys():  # noqa: SIM118  no mapping
            if name != "leaderElect":
                yield FieldWarning(election.at(name), "has no effect: leaderElect is false")


def _of_plugins(profile: Fields, extends: Extends) -> Iterator[FieldWarning]:
    plugins = profile.nested("plugins")
    multi_point = plugins.nested(_MULTI_POINT)
    everywhere = _names(multi_point, "enabled")
    configs = _objects(profile, "pluginConfig")
    given = {str(each.raw("name")) for each in configs if each.nested("args").raw("resources")}
    for key in (_MULTI_POINT, *EXTENSION_POINTS.values()):
        block = plugins.nested(key)
        for entry in _objects(block, "enabled"):
            name, weight = entry.raw("name"), entry.raw("weight")
            scores = key == "score" or (key == _MULTI_POINT and _runs(extends, name, "score") is not False)
            if weight and not scores:
                yield FieldWarning(entry.at("weight"), "has no effect: only scores are weighted")
            elif weight == 0 and weight is not False:
                yield FieldWarning(entry.at("weight"), _COUNTS_AS_ONE)
            if isinstance(name, str) and name in _NEEDS_RESOURCES and name not in given:
                lacks = f"pluginConfig gives {_shown(name)} {_NEEDS_RESOURCES[name]}"
                yield FieldWarning(entry.path, f"has no effect: {lacks}")
            if key != _MULTI_POINT and name in everywhere:
                yield FieldWarning(entry.path, f"{_shown(name)} is enabled twice: multiPoint enables it, too")
    for point, key in EXTENSION_POINTS.items():
        for entry in _objects(plugins.nested(key), "disabled"):
            if _runs(extends, entry.raw("name"), point) is False:
                yield FieldWarning(entry.path, f"has no effect: {_shown(entry.raw('name'))} does not run there")
    yield from _of_plugins_that_are_not_prepared(plugins)
    yield from _of_plugins_that_do_not_run(profile, plugins, everywhere)


def _of_plugins_that_are_not_prepared(plugins: Fields) -> Iterator[FieldWarning]:
    for before, (key, names) in _PREPARED.items():
        failing = [name for name in sorted(names) if _is_on(plugins, key, name) and not _is_on(plugins, before, name)]
        if failing:
            listed = ", ".join(map(_shown, failing))
            advice = f"every pod that comes to their {key} fails; disable them there, too"
            yield FieldWarning(
                plugins.at(before if plugins.has(before) else key), f"{before} of {listed} is off: {advice}"
            )


def _is_on(plugins: Fields, key: str, name: str) -> bool:
    """Whether a plugin of the default set, which extends the point `key`, runs there."""
    for block in (plugins.nested(key), plugins.nested(_MULTI_POINT)):
        if name in _names(block, "enabled"):
            return True
        if not _names(block, "disabled").isdisjoint((name, "*")):
            return False
    return True


def _of_plugins_that_do_not_run(profile: Fields, plugins: Fields, everywhere: set[str]) -> Iterator[FieldWarning]:
    disabled = _names(plugins.nested(_MULTI_POINT), "disabled")
    running = everywhere.union(*(_names(plugins.nested(key), "enabled") for key in EXTENSION_POINTS.values()))
    by_default = {entry.name for entry in UPSTREAM_DEFAULT_PLUGINS}
    for each in _objects(profile, "pluginConfig"):
        name = str(each.raw("name"))
        if name in OWN_PLUGINS and name not in running:
            yield FieldWarning(each.path, f"has no effect: {_shown(name)} is not enabled")
        if name in by_default and name not in running and ("*" in disabled or name in disabled):
            yield FieldWarning(each.path, f"has no effect: {_shown(name)} is disabled at multiPoint")


def _of_arguments(config: Fields) -> Iterator[FieldWarning]:
    args = config.nested("args")
    if config.raw("name") == _FIT:
        own = args.nested(OWN)
        for strategy in (args.nested("scoringStrategy"), *_objects(own, "scoringStrategies")):
            yield from _of_resources(strategy)
        names = args.raw("ignoredResources")
        for index, name in enumerate(names if isinstance(names, list) else ()):
            if _has_no_domain(name):
                path = item(args.at("ignoredResources"), index)
                yield FieldWarning(path, f"has no effect: {_shown(name)} has no domain, and is no extended resource")
    elif config.raw("name") in {"NodeResourcesBalancedAllocation", *OWN_PLUGINS}:
        yield from _of_resources(args)
    elif config.raw("name") == "NodeAffinity":
        for term in _objects(args.nested("addedAffinity"), "preferredDuringSchedulingIgnoredDuringExecution"):
            if not term.raw("weight"):
                yield FieldWarning(term.path, "has no effect: its weight is 0")


def _of_resources(block: Fields) -> Iterator[FieldWarning]:
    seen: set[str] = set()
    for resource in _objects(block, "resources"):
        name = resource.raw("name")
        if _has_no_domain(name):
            advice = "write the domain, as in nvidia.com/gpu"
            yield FieldWarning(resource.at("name"), f"{_shown(name)} is no resource of Kubernetes; {advice}")
        if name in seen:
            yield FieldWarning(resource.at("name"), f"{_shown(name)} is there twice, and counts twice")
        if isinstance(name, str):
            seen.add(name)
        if (weight := resource.raw("weight")) == 0 and weight is not False:
            yield FieldWarning(resource.at("weight"), _COUNTS_AS_ONE)


def _has_no_domain(name: object) -> bool:
    return isinstance(name, str) and "/" not in name and name not in _NATIVE and not name.startswith("hugepages-")


def _runs(extends: Extends, name: object, point: str) -> bool | None:
    """Whether a plugin extends a point; None for one that is not known, or `*`."""
    try:
        return extends(name, point) if isinstance(name, str) else None
    except LookupError:
        return None


def _objects(fields: Fields, name: str) -> list[Fields]:
    listed = fields.raw(name)
    elements = enumerate(listed) if isinstance(listed, list) else ()
    return [Fields(each, item(fields.at(name), index)) for index, each in elements if isinstance(each, dict)]


def _names(block: Fields, key: str) -> set[str]:
    return {name for each in _objects(block, key) if isinstance(name := each.raw("name"), str)}


def _shown(name: object) -> str:
    return quote(str(name))
