"""The scheduling Policy of kube-scheduler before 1.23 (`kind: Policy`, `apiVersion: v1`), as today's plugins.

Sources, of release 1.16: CreateFromConfig in pkg/scheduler/factory/factory.go, pkg/scheduler/factory/plugins.go and
pkg/scheduler/api/v1/types.go. `policy_table` says what takes over from each name.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from typing import Any, Final

from bayplan.config.connections import (
    Extender,
    ExtenderManagedResource,
    ExtenderTLSConfig,
    decode_extender,
    validate_extenders,
)
from bayplan.config.errors import FieldError, FieldWarning
from bayplan.config.fields import Fields, required_name
from bayplan.config.plugin_sets import UPSTREAM_DEFAULT_PLUGINS
from bayplan.config.policy_selection import MAX_WEIGHT, Selection
from bayplan.config.policy_table import (
    DEFAULT_PREDICATES,
    DEFAULT_PRIORITIES,
    MANDATORY_PREDICATES,
    PREDICATE_ARGUMENTS,
    PREDICATES,
    PRIORITIES,
    PRIORITY_ARGUMENTS,
    SPREADS,
    STRATEGIES,
    Successor,
)
from bayplan.config.settings import PERCENTAGE, camel_case
from bayplan.config.types import PluginEntry, Plugins, PluginSet, SchedulerConfiguration, WeightedStrategy
from bayplan.config.v1 import make_profile


def decode_policy_extender(fields: Fields) -> Extender:
    """One extender of a policy, as today's configuration says it.

    Keys of any case work, as they did: `enableHttps`, `BindVerb`. `httpTimeout` may be in nanoseconds. An `apiVersion`,
    which samples of old have, meant nothing, which is noted.
    """
    value = {key: fields.raw(key) for key in fields.keys() if key != "apiVersion"}  # noqa: SIM118  not a mapping
    if fields.raw("apiVersion"):
        fields.note("apiVersion", "has no effect, as in 1.16")
    plain = _renamed(value, Extender)
    if isinstance(tls := plain.get("tlsConfig"), dict):
        plain["tlsConfig"] = _renamed(tls, ExtenderTLSConfig)
    if isinstance(managed := plain.get("managedResources"), list):
        plain["managedResources"] = [
            _renamed(each, ExtenderManagedResource) if isinstance(each, dict) else each for each in managed
        ]
    if type(plain.get("httpTimeout")) in {int, float}:
        nanoseconds = Fields(plain, fields.path, fields.reading).integer("httpTimeout", 64) or 0
        plain["httpTimeout"] = f"{nanoseconds}ns"
    with Fields(plain, fields.path, fields.reading) as renamed:
        return decode_extender(renamed)


def _renamed(value: Mapping[str, Any], kind: type) -> dict[str, Any]:
    """`value` with the fields of `kind` under the names they have today, and others as they are."""
    names = {camel_case(each.name).casefold(): camel_case(each.name) for each in dataclass_fields(kind)}
    return {names.get(key.casefold(), key): each for key, each in value.items()}


_ALWAYS: Final = frozenset(("SchedulingGates", "PrioritySort", "DefaultPreemption", "DefaultBinder"))
_FILTERS: Final = frozenset(plugin for each in PREDICATES.values() for plugin in each.plugins)
# VolumeBinding scores today, and no priority of 1.16 did.
_SCORES: Final = frozenset(plugin for each in PRIORITIES.values() for plugin in each.plugins) | {"VolumeBinding"}


def decode_policy(fields: Fields, hard_pod_affinity_weight: int | None = None) -> SchedulerConfiguration:
    """The configuration that does what the policy lists; to be used only when there are no errors.

    What the policy says and today's plugins do otherwise is noted. `hard_pod_affinity_weight` is what counts where
    the policy has no `hardPodAffinitySymmetricWeight`.
    """
    reader = _Reader(fields.reading.notes)
    # Filters run until one rejects the node, whatever this is: it only changed how much was reported.
    if fields.boolean("alwaysCheckAllPredicates"):
        fields.note("alwaysCheckAllPredicates", "has no effect: the first filter that rejects is named")
    weight = decode_hard_weight(fields) or hard_pod_affinity_weight
    reader.predicates(fields)
    reader.priorities(fields)
    extenders = fields.objects("extenders", decode_policy_extender)
    fields.errors += validate_extenders(extenders)
    selection = reader.selection
    selection.settle_weights(fields.errors, fields.reading.notes)
    profile = make_profile(_plugins(selection), selection.plugin_config(weight))
    return SchedulerConfiguration(profiles=(profile,), extenders=extenders)


def decode_hard_weight(fields: Fields) -> int | None:
    """`hardPodAffinitySymmetricWeight`; None when it is not given, or is 0, which Go reads where there is none."""
    name = "hardPodAffinitySymmetricWeight"
    weight = fields.integer(name)
    fields.errors += PERCENTAGE.check(weight, fields.at(name), None)
    return weight or None


_Take = Callable[[int], None]
"""Switches on what an entry stands for, with a weight."""


@dataclass(frozen=True, slots=True)
class _Listed:
    """An entry of `predicates` or `priorities`."""

    path: str
    take: _Take
    weight: int
    has_argument: bool
    notes: tuple[FieldWarning, ...]
    """What there is to say if it counts."""


class _Reader:
    """Reads what a policy lists into a selection."""

    def __init__(self, notes: list[FieldWarning]) -> None:
        self.selection = Selection()
        self._notes = notes

    def predicates(self, fields: Fields) -> None:
        """Read `predicates`, or take the defaults where there are none."""
        defaults = MANDATORY_PREDICATES if fields.has("predicates") else DEFAULT_PREDICATES
        self.selection.filters |= {plugin for name in defaults for plugin in PREDICATES[name].plugins}

        def by_name(each: Fields, name: str) -> _Take:
            plugins = self._successors(each, name, PREDICATES)
            return lambda _: self.selection.filters.update(plugins)

        by_argument = self.selection.read_predicate_argument
        self._take_last(fields, "predicates", PREDICATE_ARGUMENTS, by_argument, by_name)

    def priorities(self, fields: Fields) -> None:
        """Read `priorities`, or take the defaults where there are none."""
        if not fields.has("priorities"):
            for name in DEFAULT_PRIORITIES:
                self._take(name, "priorities", 1)
            return

        def by_name(each: Fields, name: str) -> _Take:
            scores = bool(name) and bool(self._successors(each, name, PRIORITIES))
            path = each.at("name")
            return lambda weight: self._take(name, path, weight) if scores else None

        self._take_last(fields, "priorities", PRIORITY_ARGUMENTS, self.selection.read_priority_argument, by_name)

    def _take_last(
        self,
        fields: Fields,
        key: str,
        arguments: Mapping[str, Successor],
        by_argument: Callable[[Fields], _Take],
        by_name: Callable[[Fields, str], _Take],
    ) -> None:
        """Take what a list names; of several entries of one name the last counts, as in 1.16.

        One without an argument then is what the name stood for before, so it may only change the weight.
        """
        last: dict[str, _Listed] = {}

        def decode(each: Fields) -> None:
            said = len(self._notes)
            name = required_name(each)
            weight = _weight(each) if key == "priorities" else 1
            before, given = last.get(name), _argument(each, arguments)
            take: _Take = _nothing
            notes: tuple[FieldWarning, ...] = ()
            if given:
                with each.nested("argument") as argument:
                    if self._usable(argument, given, arguments[given]):
                        take = by_argument(argument)
                    else:
                        argument.raw(given)
            elif given is None and before is not None and before.has_argument:
                given, take, notes = "", before.take, before.notes
            elif given is None:
                take = by_name(each, name)
            notes = (*notes, *self._notes[said:])
            del self._notes[said:]
            if before is not None:
                self._notes.append(FieldWarning(before.path, f"is listed again at {each.path}, which counts"))
            last[name] = _Listed(each.path, take, weight, given is not None, notes)

        fields.objects(key, decode)
        for each in last.values():
            each.take(each.weight)
            self._notes += each.notes

    def _take(self, name: str, path: str, weight: int) -> None:
        """Score by a priority that is known and has no argument."""
        if name in STRATEGIES:
            self.selection.strategies.append((path, WeightedStrategy(weight, STRATEGIES[name])))
        elif name in SPREADS:
            self.selection.spreads.append((path, weight))
        elif name == "EvenPodsSpreadPriority":
            self.selection.constraints = (path, weight)
        else:
            self.selection.weights |= dict.fromkeys(PRIORITIES[name].plugins, weight)

    def _successors(self, each: Fields, name: str, table: Mapping[str, Successor]) -> tuple[str, ...]:
        if not name:
            return ()
        if name not in table:
            each.invalid("name", name, "does not exist")
            return ()
        successor = table[name]
        return successor.plugins if self._usable(each, "name", successor, name) else ()

    def _usable(self, fields: Fields, key: str, successor: Successor, value: str = "") -> bool:
        """Whether the successor can be taken; says what there is to say of it."""
        if successor.refused:
            if value:
                fields.invalid(key, value, successor.refused)
            else:
                fields.forbid(key, successor.refused)
            return False
        if successor.note:
            fields.note(key, f"{value}: {successor.note}" if value else successor.note)
        return True


def _nothing(_: int) -> None:
    """Switch nothing on."""


def _weight(each: Fields) -> int:
    weight = each.integer("weight", 64)
    if not each.has("weight") or (weight is not None and weight <= 0):
        each.invalid("weight", weight or 0, "should have a positive weight applied to it")
    elif weight is not None and weight > MAX_WEIGHT:
        each.invalid("weight", weight, f"is more than {MAX_WEIGHT}, the largest weight of today's plugins")
    return weight or 1


def _argument(each: Fields, supported: Mapping[str, Successor]) -> str | None:
    """The name of the one argument that is given; "" after an error if it is not one; None without `argument`."""
    if not each.has("argument"):
        return None
    argument = each.nested("argument")
    given = [name for name in supported if argument.has(name)]
    if len(given) == 1:
        return given[0]
    if not set(argument.keys()) - supported.keys():
        each.errors.append(FieldError(each.at("argument"), f"must hold one of {', '.join(supported)}"))
    else:
        argument.finish()
    return ""


def _plugins(selection: Selection) -> Plugins:
    """Everything listed at multiPoint, held back from the kind of point it is not listed for."""
    scores = selection.weights.keys()
    enabled = []
    for entry in UPSTREAM_DEFAULT_PLUGINS:
        if entry.name in scores:
            enabled.append(PluginEntry(entry.name, selection.weights[entry.name]))
        elif entry.name in selection.filters or entry.name in _ALWAYS:
            enabled.append(PluginEntry(entry.name))
    names = [entry.name for entry in enabled]
    only_scores = tuple(PluginEntry(name) for name in names if name in _FILTERS - selection.filters)
    only_filters = tuple(PluginEntry(name) for name in names if name in _SCORES - scores)
    return Plugins(
        pre_filter=PluginSet(disabled=only_scores),
        filter=PluginSet(disabled=only_scores),
        pre_score=PluginSet(disabled=only_filters),
        score=PluginSet(disabled=only_filters),
        multi_point=PluginSet(enabled=tuple(enabled), disabled=(PluginEntry("*"),)),
    )
