from dataclasses import replace

from tests.config.configurations import V1, load

from bayplan.cache.node_table import NodeTable
from bayplan.config.load import default_configuration
from bayplan.config.types import WeightedStrategy
from bayplan.controller.app import profiles_with_strategy
from bayplan.plugins.registry import build_frameworks


def line(configuration):
    return profiles_with_strategy(configuration.profiles, build_frameworks(configuration, NodeTable()))


def test_it_names_the_profile_with_its_strategy_and_resources():
    assert line(default_configuration()) == "bayplan MostAllocated(cpu 1, memory 1)"


def test_it_names_every_profile_also_one_that_scores_otherwise_or_not_at_all(tmp_path):
    def without(*plugins):
        return {"score": {"disabled": [{"name": name} for name in plugins]}}

    profiles = [
        {"schedulerName": "a"},
        {"schedulerName": "b", "plugins": without("NodeResourcesFit")},
        {"schedulerName": "c", "plugins": without("*")},
    ]
    assert line(load(tmp_path, {**V1, "profiles": profiles})) == (
        "a LeastAllocated(cpu 1, memory 1); b without NodeResourcesFit; c the first node that fits"
    )


def test_it_names_strategies_that_score_together():
    configuration = default_configuration()
    (profile,) = configuration.profiles
    fit = profile.plugin_config["NodeResourcesFit"]
    both = replace(fit, scoring_strategies=(WeightedStrategy(2, fit.scoring_strategy), WeightedStrategy()))
    changed = replace(profile, plugin_config={**profile.plugin_config, "NodeResourcesFit": both})
    assert line(replace(configuration, profiles=(changed,))) == (
        "bayplan 2 MostAllocated(cpu 1, memory 1) + 1 LeastAllocated(cpu 1, memory 1)"
    )
