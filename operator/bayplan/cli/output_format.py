"""The flag `--output` of the commands that answer with a table, or with JSON for programs."""

from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final

import click


class OutputFormat(StrEnum):
    """How an answer is written."""

    TABLE = "table"
    JSON = "json"
    WIDE = "wide"
    SUMMARY = "summary"


def _output(*formats: OutputFormat, text: str) -> Callable[[Any], Any]:
    values = [each.value for each in formats]
    return click.option(
        "--output", "-o", type=click.Choice(values), default="table", metavar="|".join(values), help=text
    )


_TABLE, _JSON = OutputFormat.TABLE, OutputFormat.JSON
OUTPUT: Final = _output(_TABLE, _JSON, text="For people, or for programs.")
SUMMARY_OUTPUT: Final = _output(_TABLE, OutputFormat.SUMMARY, _JSON, text="For people, its end alone, or for programs.")
WIDE_OUTPUT: Final = _output(_TABLE, OutputFormat.WIDE, _JSON, text="For people, with all columns, or for programs.")
