"""What the line at the start says of the profiles."""

from collections.abc import Iterable, Mapping

from bayplan.config.types import NodeResourcesFitArgs, Profile, ScoringStrategy
from bayplan.framework.runtime import Framework

_FIT = "NodeResourcesFit"


def profiles_with_strategy(profiles: Iterable[Profile], frameworks: Mapping[str, Framework]) -> str:
    """Return each profile with what nodes are scored by: "bayplan MostAllocated(cpu 1, memory 1)"."""
    return "; ".join([f"{each.scheduler_name} {_strategy(each, frameworks[each.scheduler_name])}" for each in profiles])


def _strategy(profile: Profile, framework: Framework) -> str:
    plugins = [entry.plugin.name for entry in framework.scores]
    args = profile.plugin_config.get(_FIT)
    if _FIT in plugins and isinstance(args, NodeResourcesFitArgs):
        if args.scoring_strategies:
            return " + ".join([f"{each.weight} {_shown(each.strategy)}" for each in args.scoring_strategies])
        return _shown(args.scoring_strategy)
    return "without NodeResourcesFit" if plugins else "the first node that fits"


def _shown(strategy: ScoringStrategy) -> str:
    return f"{strategy.type}({', '.join([f'{each.name} {each.weight}' for each in strategy.resources])})"
