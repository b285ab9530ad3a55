"""What of the configuration keeps pods from being packed: strategy, other scores, resources without weight."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from bayplan.config.convert import to_minimal_yaml
from bayplan.config.types import (
    PluginEntry,
    PodTopologySpreadArgs,
    PodTopologySpreadDefaulting,
    Profile,
    ResourceSpec,
    ScoringStrategy,
    ScoringStrategyType,
)
from bayplan.doctor.finding import Finding, Patient

_FIT: Final = "NodeResourcesFit"
_SPREAD: Final = "PodTopologySpread"
_SCARCE_WEIGHT: Final = 5
"""As docs/configuration.md has it in its example."""
_UNSPREADING: Final = PodTopologySpreadArgs(defaulting_type=PodTopologySpreadDefaulting.LIST)


def strategy(patient: Patient) -> Iterator[Finding]:
    """Profiles whose strategy puts pods on the emptiest node."""
    spreading = [each for each in patient.configuration.profiles if each.fit.spreads]
    if spreading and patient.saves(better := patient.packed(_packing)):
        names = ", ".join(each.scheduler_name for each in spreading)
        yield Finding(
            "strategy", names, "LeastAllocated spreads pods", patient.compared(better), _fixed(patient, _packing)
        )


def outvoted(patient: Patient) -> Iterator[Finding]:
    """Scores beside NodeResourcesFit's without which the same strategy needs fewer nodes."""
    for name in sorted({each.plugin.name for each in patient.scores} - {_FIT}):
        change: Callable[[Profile], Profile] = partial(_without, name)
        if name == _SPREAD and any(map(_spreads_by_default, patient.configuration.profiles)):
            change = _unspread
        better = patient.packed(change)
        if patient.saves(better):
            what = "its default constraints outvote" if change is _unspread else "its score outvotes"
            yield Finding("outvoted", name, f"{what} the strategy", patient.compared(better), _fixed(patient, change))


def scarce_without_weight(patient: Patient) -> Iterator[Finding]:
    """Devices and the like that pods ask for and the strategy does not count."""
    for name in sorted(patient.asked_devices):
        if not all(name in {each.name for each in _resources(profile)} for profile in patient.configuration.profiles):
            change = partial(_weighing, name)
            better = patient.packed(change)
            now, then = (
                int((nodes.offered(name) * (nodes.taken(name) == 0)).sum())
                for nodes in (patient.as_it_is.simulator.cache.nodes, better.simulator.cache.nodes)
            )
            if patient.saves(better) or (better.nodes <= patient.as_it_is.nodes and then > now):
                effect = (
                    f"{patient.compared(better)}; {name} on nodes where none is taken: {now} as it is, {then} with it"
                )
                message = "pods ask for it, and the strategy does not count it"
                yield Finding("scarce-without-weight", name, message, effect, _fixed(patient, change))


def _fixed(patient: Patient, change: Callable[[Profile], Profile]) -> str:
    profiles = tuple(map(change, patient.configuration.profiles))
    return to_minimal_yaml(replace(patient.configuration, profiles=profiles))


def _resources(profile: Profile) -> list[ResourceSpec]:
    fit = profile.fit
    strategies = [each.strategy for each in fit.scoring_strategies] or [fit.scoring_strategy]
    return [each for strategy in strategies for each in strategy.resources]


def _packing(profile: Profile) -> Profile:
    fit = profile.fit
    if not fit.spreads:
        return profile
    packs = ScoringStrategy(ScoringStrategyType.MOST_ALLOCATED, fit.scoring_strategy.resources)
    return profile.with_args(_FIT, replace(fit, scoring_strategy=packs))


def _weighing(name: str, profile: Profile) -> Profile:
    fit = profile.fit
    if fit.scoring_strategies or name in {each.name for each in _resources(profile)}:
        return profile
    more = (*fit.scoring_strategy.resources, ResourceSpec(name, _SCARCE_WEIGHT))
    return profile.with_args(_FIT, replace(fit, scoring_strategy=replace(fit.scoring_strategy, resources=more)))


def _spreads_by_default(profile: Profile) -> bool:
    args = profile.plugin_config.get(_SPREAD)
    return isinstance(args, PodTopologySpreadArgs) and args != _UNSPREADING


def _unspread(profile: Profile) -> Profile:
    return profile.with_args(_SPREAD, _UNSPREADING)


def _without(name: str, profile: Profile) -> Profile:
    score = profile.plugins.score
    enabled = tuple(each for each in score.enabled if each.name != name)
    changed = replace(score, enabled=enabled, disabled=(*score.disabled, PluginEntry(name)))
    return replace(profile, plugins=replace(profile.plugins, score=changed))
