"""The flag `--feature-gates`, as all commands that load a configuration have it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import click

from bayplan.cli.flag_groups import Flag
from bayplan.config.feature_gates import FLAG

if TYPE_CHECKING:
    from bayplan.config.types import SchedulerConfiguration

FEATURE_GATES: Final = Flag(
    FLAG,
    multiple=True,
    metavar="NAME=BOOL,...",
    help="Switch features of kube-scheduler on or off, such as StorageCapacityScoring=false. Can be given several "
    "times.",
)


def without_effect(configuration: "SchedulerConfiguration") -> Iterator[str]:
    """Say of each gate that was set and changes nothing that it does not."""
    for name in configuration.feature_gates.without_effect:
        yield f"{FLAG}: {name} changes nothing in bayplan"


def tell_without_effect(configuration: "SchedulerConfiguration") -> None:
    """Write the same to standard error."""
    for line in without_effect(configuration):
        click.echo(line, err=True)
