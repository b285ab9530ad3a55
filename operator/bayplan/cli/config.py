"""`bayplan config`: check, show and convert configuration files."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from bayplan.cache.node_table import NodeTable
from bayplan.cli import BAD_INPUT
from bayplan.cli.feature_gates import FeatureGatesOption, tell_without_effect
from bayplan.config.convert import to_effective_yaml, to_minimal_yaml
from bayplan.config.errors import ConfigurationError, FieldNote, note_lines, quote_unprintable
from bayplan.config.feature_gates import parse_feature_gates
from bayplan.config.load import default_configuration, load_configuration
from bayplan.config.plugin_sets import IMPLEMENTED_PLUGINS, UPSTREAM_PLUGINS
from bayplan.config.types import SchedulerConfiguration
from bayplan.plugins.out_of_tree import installed_plugins
from bayplan.plugins.registry import build_frameworks, in_tree_extends

config_app = typer.Typer(
    name="config",
    help="Check, show and convert configuration files: KubeSchedulerConfiguration v1, v1alpha1 and Policy v1.",
    no_args_is_help=True,
)

ConfigurationFile = Annotated[Path, typer.Argument(metavar="FILE", help="Configuration file, YAML or JSON.")]
OptionalConfigurationFile = Annotated[
    Path | None,
    typer.Argument(metavar="FILE", help="Configuration file, YAML or JSON; without it, what bayplan does by default."),
]
SchedulerName = Annotated[
    str | None,
    typer.Option("--scheduler-name", metavar="NAME", help="Rename the only profile, as `bayplan run` would."),
]


@config_app.command()
def check(
    file: ConfigurationFile, scheduler_name: SchedulerName = None, feature_gates: FeatureGatesOption = None
) -> None:
    """Say everything that is wrong with FILE, or that it is fine.

    Errors go to standard error, one a line, with the path of the field; the exit code is then 2. So does what an old
    format says and today's has no successor for, which is no error.
    """
    with _reported(file) as notes:
        configuration = load_checked(file, scheduler_name, feature_gates, notes)
    tell_without_effect(configuration)
    profiles = configuration.profiles
    noun = "profile" if len(profiles) == 1 else "profiles"
    names = ", ".join(quote_unprintable(profile.scheduler_name) for profile in profiles)
    typer.echo(f"{quote_unprintable(str(file))}: ok: {len(profiles)} {noun}: {names}")


@config_app.command()
def show(file: OptionalConfigurationFile = None, scheduler_name: SchedulerName = None) -> None:
    """Print the effective configuration: every field after defaults, and plugins merged with the default ones."""
    with _reported(file):
        configuration = load_checked(file, scheduler_name, reads_certificates=False)
    typer.echo(to_effective_yaml(configuration), nl=False)


@config_app.command()
def convert(file: ConfigurationFile, scheduler_name: SchedulerName = None) -> None:
    """Print FILE as KubeSchedulerConfiguration v1, with only what differs from the defaults.

    The way out of a legacy Policy or a v1alpha1 file: redirect the output into the new file. What has no successor goes
    to standard error, one a line, with the path of its field.
    """
    with _reported(file) as notes:
        configuration = load_checked(file, scheduler_name, notes=notes, reads_certificates=False)
    typer.echo(to_minimal_yaml(configuration), nl=False)


def load_checked(
    file: Path | None,
    scheduler_name: str | None = None,
    feature_gates: Sequence[str] | None = None,
    notes: list[FieldNote] | None = None,
    *,
    reads_certificates: bool = True,
    only_regular: bool = False,
) -> SchedulerConfiguration:
    """Return the configuration in `file`, or the default one, which `bayplan run` can then begin with.

    Plugin sets work out, plugins from outside are imported and made, and extenders' certificates are read unless they
    need not be here. With `only_regular` the file may be no pipe. `feature_gates` are the values of
    `--feature-gates`. `notes` gets what an old format says that has no successor.

    Raises:
        ConfigurationError: with everything that is wrong.
    """
    gates = parse_feature_gates(feature_gates or ())
    if file is None:
        return replace(default_configuration(scheduler_name=scheduler_name), feature_gates=gates)
    known = IMPLEMENTED_PLUGINS | (installed_plugins() - UPSTREAM_PLUGINS)
    return load_configuration(
        file,
        scheduler_name=scheduler_name,
        known_plugins=known,
        gates=gates,
        notes=notes,
        extends=in_tree_extends,
        reads_certificates=reads_certificates,
        only_regular=only_regular,
        check=lambda configuration: build_frameworks(configuration, NodeTable()),
    )


@contextmanager
def _reported(file: Path | None) -> Iterator[list[FieldNote]]:
    notes: list[FieldNote] = []
    try:
        yield notes
        for line in note_lines(file, notes):
            typer.echo(line, err=True)
    except ConfigurationError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(BAD_INPUT) from None
