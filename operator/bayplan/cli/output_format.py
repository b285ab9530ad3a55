"""The flag `--output` of the commands that answer with a table, or with JSON for programs."""

from enum import StrEnum
from typing import Final

import click


class OutputFormat(StrEnum):
    """How an answer is written."""

    TABLE = "table"
    JSON = "json"


OUTPUT: Final = click.option(
    "--output",
    "-o",
    type=click.Choice([each.value for each in OutputFormat]),
    default=OutputFormat.TABLE.value,
    metavar="|".join(OutputFormat),
    help="For people, or for programs.",
)
