"""`bayplan config`: check, show and convert configuration files."""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import click
from click.exceptions import Exit

from bayplan.cache.node_table import NodeTable
from bayplan.cli import BAD_INPUT
from bayplan.cli.flags import FEATURE_GATES, STDIN, command, noted
from bayplan.cli.help_sections import CommandGroup
from bayplan.config.convert import to_effective_yaml, to_minimal_yaml
from bayplan.config.document import MAX_BYTES, Positions, parse_document, read_data
from bayplan.config.errors import (
    ConfigurationError,
    FieldError,
    FieldWarning,
    InputError,
    Remark,
    line_of,
    quote,
    quote_unprintable,
)
from bayplan.config.feature_gates import DEFAULT_FEATURE_GATES, FLAG, parse_feature_gates
from bayplan.config.flags import flag
from bayplan.config.lint import configuration_warnings, spreading_profiles
from bayplan.config.load import default_configuration, load_configuration
from bayplan.config.plugin_sets import IMPLEMENTED_PLUGINS, UPSTREAM_PLUGINS
from bayplan.config.schema import configuration_schema
from bayplan.config.types import SchedulerConfiguration
from bayplan.plugins.out_of_tree import installed_plugins
from bayplan.plugins.registry import build_frameworks, in_tree_extends
from bayplan.shown_text import counted


@click.group(
    "config",
    cls=CommandGroup,
    examples=("bayplan config check scheduler.yaml", "bayplan config convert policy.json >scheduler.yaml"),
)
def config() -> None:
    """Check, show, convert and describe configuration files: KubeSchedulerConfiguration v1, v1alpha1 and Policy v1."""


_MAX_WARNINGS: Final = 100


@dataclass(frozen=True)
class _NamedFile:
    file: Path = flag("FILE", "Configuration file, YAML or JSON; - is standard input.")
    scheduler_name: str | None = flag("--scheduler-name NAME", "Rename the only profile, as `bayplan run` would.")


@dataclass(frozen=True)
class _CheckFlags(_NamedFile):
    feature_gates: Sequence[str] = FEATURE_GATES()
    output: str = flag("--output -o text|json", "For people and editors, or for programs.", default="text")


@dataclass(frozen=True)
class _ShowFlags(_NamedFile):
    file: Path | None = flag(  # type: ignore[assignment]
        "[FILE]",
        "Configuration file, YAML or JSON; - is standard input; without it, what bayplan does by default.",
    )


@command(
    parent=config,
    short_help="Say everything that is wrong with FILE.",
    examples=(
        "bayplan config check scheduler.yaml",
        "bayplan config check policy.json --scheduler-name packer",
        "kubectl get configmap bayplan -o jsonpath='{.data.config\\.yaml}' | bayplan config check -o json -",
    ),
)
def check(flags: _CheckFlags) -> None:
    """Say everything that is wrong with FILE, or that it is fine.

    Errors go to standard error, one a line, with line, column and path of the field; the exit code is then 2. So do
    warnings of what is hardly meant, and what an old format says and today's has no successor for, which are no errors.
    With -o json all of them go to standard output, as one list of objects.
    """
    notes: list[FieldWarning] = []
    configuration = None
    errors: tuple[FieldError, ...] = ()
    file, data = flags.file, read_configuration(flags.file)
    try:
        configuration = load_checked(file, flags.scheduler_name, flags.feature_gates, notes, data=data)
    except ConfigurationError as error:
        errors = error.errors
    document = _document(data)
    warnings = [*configuration_warnings(document, in_tree_extends, convertible=not errors), *notes]
    # A file that is refused unread, for its depth, say, may be slow to parse to its end.
    remarks: list[Remark] = [*errors, *(Positions(data).placed(warnings) if warnings else ())]
    if flags.output == "json":
        _print_json(file, remarks)
    else:
        _print_remarks(file, remarks)
    if configuration is None:
        raise Exit(BAD_INPUT)
    for line in without_effect(configuration):
        click.echo(line, err=True)
    if flags.output == "text":
        profiles = configuration.profiles
        names = ", ".join(quote_unprintable(profile.scheduler_name) for profile in profiles)
        click.echo(f"{quote_unprintable(str(file))}: ok: {counted(len(profiles), 'profile')}: {names}")
        for name in spreading_profiles(document, profiles):
            told = f"note: profile {quote(name)} names no scoring strategy"
            click.echo(f"{quote_unprintable(str(file))}: {told}: pods spread; MostAllocated packs them", err=True)


def read_configuration(file: Path) -> bytes:
    """Return what the file holds, or standard input where it is `-`; raises InputError where it cannot be read."""
    try:
        if str(file) == STDIN:
            return sys.stdin.buffer.read(MAX_BYTES + 1)
        return read_data(file)
    except OSError as error:
        raise InputError(f"{STDIN}: cannot be read: {error.strerror or error}") from None


def _document(data: bytes) -> dict[str, Any]:
    """What is in the file; nothing where it is no object, which is an error, and the only one."""
    with suppress(ConfigurationError):
        return parse_document(data, [])
    return {}


def _print_remarks(file: Path, remarks: Sequence[Remark]) -> None:
    errors = [each for each in remarks if isinstance(each, FieldError)]
    if errors:
        click.echo(str(ConfigurationError(errors, file=str(file))), err=True)
    for each in remarks[len(errors) :][:_MAX_WARNINGS]:
        click.echo(line_of(str(file), each, "warning"), err=True)


def _print_json(file: Path, remarks: Sequence[Remark]) -> None:
    said = [
        {
            # A name that is no text is escaped as in lines.
            "file": None if each.path.startswith("--") else quote_unprintable(str(file)),
            "line": each.place.line if each.place is not None else None,
            "column": each.place.column if each.place is not None else None,
            "path": each.path,
            "severity": "error" if isinstance(each, FieldError) else "warning",
            "message": each.message,
        }
        for each in remarks
    ]
    click.echo(json.dumps(said, indent=2))


@command(
    parent=config,
    short_help="Print what is in force, every field.",
    examples=("bayplan config show", "bayplan config show scheduler.yaml"),
)
def show(flags: _ShowFlags) -> None:
    """Print the effective configuration: every field after defaults, and plugins merged with the default ones."""
    data = None if flags.file is None else read_configuration(flags.file)
    configuration = load_checked(flags.file, flags.scheduler_name, reads_certificates=False, data=data)
    click.echo(to_effective_yaml(configuration), nl=False)


@command(
    parent=config,
    short_help="Print FILE as KubeSchedulerConfiguration v1.",
    examples=("bayplan config convert policy.json >scheduler.yaml",),
)
def convert(flags: _NamedFile) -> None:
    """Print FILE as KubeSchedulerConfiguration v1, with only what differs from the defaults.

    The way out of a legacy Policy or a v1alpha1 file: redirect the output into the new file. What has no successor goes
    to standard error, one a line, with the path of its field.
    """
    notes: list[FieldWarning] = []
    data = read_configuration(flags.file)
    configuration = load_checked(flags.file, flags.scheduler_name, notes=notes, reads_certificates=False, data=data)
    for note in notes:
        click.echo(line_of(str(flags.file), note), err=True)
    click.echo(to_minimal_yaml(configuration), nl=False)


@command(
    parent=config,
    short_help="Print the JSON Schema of KubeSchedulerConfiguration v1.",
    examples=("bayplan config schema >configuration.schema.json",),
)
def schema() -> None:
    """Print the JSON Schema of KubeSchedulerConfiguration v1, for editors that complete and check as you type.

    It accepts all that bayplan reads. What depends on several fields at once only `bayplan config check` tells.
    """
    click.echo(json.dumps(configuration_schema(), indent=2, ensure_ascii=False))


def without_effect(configuration: SchedulerConfiguration) -> Iterator[str]:
    """Say of each feature gate that was set which of them bayplan takes no notice of."""
    for name in configuration.feature_gates.without_effect:
        yield f"{FLAG}: {name} changes nothing in bayplan"


def load_checked(
    file: Path | None,
    scheduler_name: str | None = None,
    feature_gates: Sequence[str] | None = None,
    notes: list[FieldWarning] | None = None,
    *,
    reads_certificates: bool = True,
    only_regular: bool = False,
    data: bytes | None = None,
) -> SchedulerConfiguration:
    """Return the configuration in `file`, or the default one, which `bayplan run` can then begin with.

    Plugin sets work out, plugins from outside are imported and made, and extenders' certificates are read unless they
    need not be here. With `only_regular` the file may be no pipe. `feature_gates` are the values of
    `--feature-gates`. `notes` gets what an old format says that has no successor. `data` is what the file holds, where
    it was read before.

    Raises:
        ConfigurationError: with everything that is wrong.
    """
    errors: list[FieldError] = []
    gates = DEFAULT_FEATURE_GATES
    with noted(errors):
        gates = parse_feature_gates(feature_gates or ())
    with noted(errors):
        if file is None:
            configuration = replace(default_configuration(scheduler_name=scheduler_name), feature_gates=gates)
        else:
            configuration = load_configuration(
                file,
                scheduler_name=scheduler_name,
                known_plugins=IMPLEMENTED_PLUGINS | (installed_plugins() - UPSTREAM_PLUGINS),
                gates=gates,
                notes=notes,
                extends=in_tree_extends,
                reads_certificates=reads_certificates,
                only_regular=only_regular,
                data=data,
                check=lambda configuration: build_frameworks(configuration, NodeTable()),
            )
    if errors:
        raise ConfigurationError(errors, file="" if file is None else str(file))
    return configuration
