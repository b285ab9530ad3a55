"""From a file to the effective configuration: the entry of this package."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from bayplan.config.connections import extender_tls_errors
from bayplan.config.document import Positions, parse_document, read_data
from bayplan.config.errors import (
    ConfigurationError,
    FieldError,
    FieldWarning,
    forbidden,
    invalid,
    item,
    required,
    show_value,
    unsupported,
)
from bayplan.config.feature_gates import DEFAULT_FEATURE_GATES, FeatureGates
from bayplan.config.fields import Fields, Reading
from bayplan.config.plugin_sets import IMPLEMENTED_PLUGINS, Extends, plugin_set_errors
from bayplan.config.policy import decode_policy
from bayplan.config.types import (
    API_VERSION,
    DEFAULT_SCHEDULER_NAME,
    KIND,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    PodTopologySpreadDefaulting,
    SchedulerConfiguration,
    ScoringStrategy,
    ScoringStrategyType,
)
from bayplan.config.v1 import decode_file, decode_v1, make_profile
from bayplan.config.v1alpha1 import decode_v1alpha1, path_in_v1alpha1

_ALPHA_VERSION: Final = "kubescheduler.config.k8s.io/v1alpha1"
_REMOVED_VERSIONS: Final = tuple(
    f"kubescheduler.config.k8s.io/{version}" for version in ("v1alpha2", "v1beta1", "v1beta2", "v1beta3")
)
"""Versions whose plugins had other names than today's."""
_FORMATS: Final[Sequence[tuple[tuple[str, str], Callable[[Fields], SchedulerConfiguration]]]] = (
    ((API_VERSION, KIND), decode_v1),
    ((_ALPHA_VERSION, KIND), decode_v1alpha1),
    (("v1", "Policy"), decode_policy),
)
"""What is read, by apiVersion and kind."""


def load_configuration(
    path: Path,
    *,
    scheduler_name: str | None = None,
    known_plugins: frozenset[str] = IMPLEMENTED_PLUGINS,
    gates: FeatureGates = DEFAULT_FEATURE_GATES,
    notes: list[FieldWarning] | None = None,
    extends: Extends | None = None,
    reads_certificates: bool = False,
    only_regular: bool = False,
    data: bytes | None = None,
    check: Callable[[SchedulerConfiguration], object] | None = None,
) -> SchedulerConfiguration:
    """The effective configuration in the file: decoded strictly, defaulted, merged and validated.

    Reads KubeSchedulerConfiguration v1 and v1alpha1, and Policy v1, as YAML or JSON.

    Args:
        path: the file.
        scheduler_name: renames the only profile.
        known_plugins: plugins that may be enabled and configured; other names are errors.
        gates: which features are on; arguments of those that are off are errors.
        notes: gets what an old format says and today's has no successor for.
        extends: tells which points a plugin extends. If the file has errors, its plugin sets are checked as well, so
            that all errors are told at once.
        reads_certificates: with it, the certificates of extenders must be there and fit, as `bayplan run` needs them.
        only_regular: with it, the file may be no pipe, which could keep the caller for a minute.
        data: what the file holds, where it is no file that can be read by its name.
        check: gets the whole configuration, or each sound profile by itself if there are errors; it raises
            ConfigurationError with those it finds.

    Raises:
        ConfigurationError: with everything that is wrong; its text has one line per error, each with the file's name.
    """
    errors: list[FieldError] = []
    reading = Reading(errors, [] if notes is None else notes, known_plugins, gates, path.parent)
    if data is None:
        data = read_data(path, only_regular=only_regular)
    try:
        document = parse_document(data, errors)
    except ConfigurationError as error:
        raise ConfigurationError([*errors, *error.errors], file=str(path)) from None
    version, kind = document.get("apiVersion"), document.get("kind")
    old = (version, kind) == (_ALPHA_VERSION, KIND)
    decode = next((decode for format_, decode in _FORMATS if format_ == (version, kind)), None)
    if decode is None:
        raise _placed([*errors, *_wrong_kind(version, kind)], path, data)
    configuration = decode_file(decode, document, reading)
    if scheduler_name is not None:
        configuration = rename_profile(configuration, scheduler_name, errors)
    if reads_certificates:
        errors += extender_tls_errors(configuration.extenders)
    configuration = replace(configuration, feature_gates=gates)
    sets: Sequence[FieldError] = ()
    if errors and extends is not None:
        # Where the same stands in a file of today.
        placed = [FieldError(f"profiles[0].{each.path}", each.message) for each in errors] if old else errors
        sets = plugin_set_errors(configuration, extends, placed)
        if check is not None and version == API_VERSION:
            sets = [*sets, *_found_in_sound_profiles(check, configuration, errors)]
    elif not errors and check is not None:
        sets = _found(check, configuration)
    errors += (FieldError(path_in_v1alpha1(each.path), each.message) if old else each for each in sets)
    if errors:
        raise _placed(errors, path, data)
    return configuration


def default_configuration(*, scheduler_name: str | None = None) -> SchedulerConfiguration:
    """What bayplan does without a file: one profile, `bayplan` unless named, that packs by cpu and memory.

    Pods without constraints of their own are not spread (docs/adr/0023-what-packs-does-not-spread.md).

    Raises:
        ConfigurationError: `scheduler_name` is empty, or several names.
    """
    if errors := _errors_of_name(scheduler_name):
        raise ConfigurationError(errors)
    name = DEFAULT_SCHEDULER_NAME if scheduler_name is None else scheduler_name
    packing = NodeResourcesFitArgs(scoring_strategy=ScoringStrategy(ScoringStrategyType.MOST_ALLOCATED))
    unspread = PodTopologySpreadArgs(defaulting_type=PodTopologySpreadDefaulting.LIST)
    profile = make_profile(None, {}).with_args("NodeResourcesFit", packing).with_args("PodTopologySpread", unspread)
    return SchedulerConfiguration(profiles=(replace(profile, scheduler_name=name),))


def rename_profile(
    configuration: SchedulerConfiguration, name: str, errors: list[FieldError]
) -> SchedulerConfiguration:
    """The configuration with its only profile called `name`; several profiles are an error."""
    errors += _errors_of_name(name)
    if len(configuration.profiles) != 1:
        count = len(configuration.profiles)
        errors.append(forbidden("--scheduler-name", f"renames the only profile, but there are {count}"))
        return configuration
    return replace(configuration, profiles=(replace(configuration.profiles[0], scheduler_name=name),))


def _errors_of_name(name: str | None) -> list[FieldError]:
    if name == "":
        return [required("--scheduler-name")]
    if name is not None and "," in name:
        return [invalid("--scheduler-name", name, "is one name; for several, --config has a profile for each")]
    return []


def _placed(errors: Sequence[FieldError], path: Path, data: bytes) -> ConfigurationError:
    """All errors, each once, with their places in the file."""
    return ConfigurationError(Positions(data).placed(dict.fromkeys(errors)), file=str(path))


def _found_in_sound_profiles(
    check: Callable[[SchedulerConfiguration], object],
    configuration: SchedulerConfiguration,
    errors: Sequence[FieldError],
) -> Iterator[FieldError]:
    """What `check` finds in the profiles that have no errors, under their places among all."""
    for index, profile in enumerate(configuration.profiles):
        path = item("profiles", index)
        if not any(error.path.startswith(path) for error in errors):
            for each in _found(check, replace(configuration, profiles=(profile,))):
                yield FieldError(path + each.path.removeprefix("profiles[0]"), each.message)


def _found(
    check: Callable[[SchedulerConfiguration], object], configuration: SchedulerConfiguration
) -> Sequence[FieldError]:
    try:
        check(configuration)
    except ConfigurationError as error:
        return error.errors
    return ()


def _wrong_kind(version: object, kind: object) -> list[FieldError]:
    if kind == KIND and version in _REMOVED_VERSIONS:
        detail = (
            f"was removed from kube-scheduler; change it to {API_VERSION} and move resource scoring plugins to "
            "the scoringStrategy of NodeResourcesFit; v1, v1alpha1 and Policy v1 are read"
        )
        return [invalid("apiVersion", version, detail)]
    if kind is None or kind == "":
        return [required("kind", f"{KIND} or Policy")]
    if kind not in (KIND, "Policy"):
        return [unsupported("kind", kind, [KIND, "Policy"])]
    supported = [API_VERSION, _ALPHA_VERSION] if kind == KIND else ["v1"]
    if version is None or version == "":
        return [required("apiVersion", f"{supported[0]} for kind {show_value(kind)}")]
    return [unsupported("apiVersion", version, supported)]
