"""Configurations in which a plugin is switched off at a single extension point, or a whole extension point is."""

from tests.oracle.case import Object
from tests.oracle.profiles import document, profile, without

from bayplan.config.plugin_sets import OWN_PLUGINS
from bayplan.plugins.registry import IN_TREE, in_tree_extends


def _extending(point: str) -> tuple[str, ...]:
    return tuple(name for name in IN_TREE if name not in OWN_PLUGINS and in_tree_extends(name, point))


_PRE_SCORE = _extending("pre_score")
SWITCHED_OFF: dict[str, tuple[str, ...]] = {
    "preFilter": _extending("pre_filter"),
    "filter": _extending("filter"),
    "postFilter": (*_extending("post_filter"), "*"),
    "preScore": _PRE_SCORE,
    # Stored cases are made in this order: first those that lack a preScore in other cases.
    "score": (*_PRE_SCORE, *(name for name in _extending("score") if name not in _PRE_SCORE)),
}
"""The plugins that are switched off by extension point, each in a profile of its own."""


def profile_without(plugin: str) -> str:
    """The name of the profile that lacks this plugin, or all of them for "*"."""
    return f"no-{'plugins' if plugin == '*' else plugin.lower()}"


def configuration_without(point: str) -> str:
    """The name of the configuration whose profiles each lack something at this extension point."""
    return f"without-{point.lower()}"


CONFIGURATIONS: dict[str, Object] = {
    configuration_without(point): document(
        *(profile(profile_without(plugin), without(point, plugin)) for plugin in plugins)
    )
    for point, plugins in SWITCHED_OFF.items()
}
"""Documents by name."""
