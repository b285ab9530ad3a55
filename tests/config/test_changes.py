"""What is different in a changed configuration, and what of that a running scheduler takes over."""

from dataclasses import replace
from datetime import timedelta

import pytest

from bayplan.config.changes import changed_fields, changed_profiles, restart_errors
from bayplan.config.connections import Extender
from bayplan.config.load import default_configuration
from bayplan.config.types import NodeResourcesFitArgs, PluginEntry, PluginSet

BEFORE = default_configuration()
(PROFILE,) = BEFORE.profiles
SCORE = replace(PROFILE.plugins, score=PluginSet(enabled=(PluginEntry("ImageLocality", 7),)))
PACKING = {**PROFILE.plugin_config, "NodeResourcesFit": NodeResourcesFitArgs()}
OTHER = replace(PROFILE, scheduler_name="other")


def with_profile(**fields):
    return replace(BEFORE, profiles=(replace(PROFILE, **fields),))


@pytest.mark.parametrize(
    ("after", "fields", "profiles"),
    [
        (replace(BEFORE), [], set()),
        (replace(BEFORE, pod_max_backoff_seconds=60), ["podMaxBackoffSeconds"], set()),
        (replace(BEFORE, parallelism=1), ["parallelism"], set()),
        (replace(BEFORE, percentage_of_nodes_to_score=5), ["percentageOfNodesToScore"], {"bayplan"}),
        (replace(BEFORE, extenders=(Extender(url_prefix="http://x"),)), ["extenders"], {"bayplan"}),
        (with_profile(plugins=SCORE), ["profiles[0].plugins.score"], {"bayplan"}),
        (with_profile(plugin_config=PACKING), ["profiles[0].pluginConfig.NodeResourcesFit"], {"bayplan"}),
        (with_profile(percentage_of_nodes_to_score=5), ["profiles[0].percentageOfNodesToScore"], {"bayplan"}),
    ],
)
def test_what_can_be_taken_over_is_told_by_field_and_concerns_the_profiles_it_is_about(after, fields, profiles):
    assert changed_fields(BEFORE, after) == fields
    assert changed_profiles(BEFORE, after) == profiles
    assert restart_errors(BEFORE, after) == []


WHY = "is read at the start only, and the scheduler has to be started again for it"


@pytest.mark.parametrize(
    ("after", "errors"),
    [
        (
            replace(BEFORE, leader_election=replace(BEFORE.leader_election, lease_duration=timedelta(seconds=60))),
            [f"leaderElection.leaseDuration: Forbidden: {WHY}"],
        ),
        (
            replace(BEFORE, client_connection=replace(BEFORE.client_connection, qps=1.0, burst=2)),
            [f"clientConnection.qps: Forbidden: {WHY}", f"clientConnection.burst: Forbidden: {WHY}"],
        ),
        (replace(BEFORE, enable_profiling=False), [f"enableProfiling: Forbidden: {WHY}"]),
        (
            replace(BEFORE, profiles=(PROFILE, OTHER)),
            [f'profiles[1].schedulerName: Forbidden: "other" is new; a profile\'s name {WHY}'],
        ),
        (
            replace(BEFORE, profiles=(OTHER,)),
            [
                f'profiles[0].schedulerName: Forbidden: "other" is new; a profile\'s name {WHY}',
                f'profiles: Forbidden: "bayplan" is missing; a profile\'s name {WHY}',
            ],
        ),
    ],
)
def test_what_needs_a_start_is_an_error_that_names_the_field(after, errors):
    assert [str(each) for each in restart_errors(BEFORE, after)] == errors
    assert changed_fields(BEFORE, after)


def test_the_order_of_profiles_does_not_matter():
    two = replace(BEFORE, profiles=(PROFILE, OTHER))
    turned = replace(BEFORE, profiles=(OTHER, PROFILE))
    assert (changed_profiles(two, turned), restart_errors(two, turned)) == (frozenset(), [])


def test_one_of_two_profiles_that_changed_is_told_by_its_place_in_the_new_file():
    two = replace(BEFORE, profiles=(PROFILE, OTHER))
    turned = replace(BEFORE, profiles=(replace(OTHER, plugin_config=PACKING), PROFILE))
    assert changed_fields(two, turned) == ["profiles[0].pluginConfig.NodeResourcesFit"]
    assert changed_profiles(two, turned) == {"other"}
