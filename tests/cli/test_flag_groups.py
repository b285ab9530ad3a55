from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from bayplan.cli.flag_groups import flag_values, with_flag_groups


@dataclass(frozen=True, kw_only=True)
class Size:
    width: Annotated[int, typer.Option("--how-wide")] = 1
    height: Annotated[int, typer.Option("--height", max=9)] = 2


@dataclass(frozen=True, kw_only=True)
class Paint:
    colour: Annotated[str | None, typer.Option("--colour", help="Any one.")] = None


def output_of(*arguments):
    app = typer.Typer()

    @app.command()
    @with_flag_groups
    def draw(size: Size, paint: Paint) -> None:
        """Draw it."""
        typer.echo(f"{size} {paint}")

    return CliRunner().invoke(app, arguments).output


def test_each_group_gets_its_flags():
    assert output_of("--colour", "red", "--how-wide", "5").strip() == "Size(width=5, height=2) Paint(colour='red')"


def test_flags_are_checked_and_helped_with_as_typer_does():
    assert "10 is not in the range" in output_of("--height", "10")
    assert all(part in output_of("--help") for part in ("Draw it.", "--how-wide", "Any one."))


def test_values_to_be_shown_hide_passwords_in_urls():
    assert flag_values(Paint(colour="https://me:hunter2@paint.example"), Size()) == {
        "colour": "https://[hidden]@paint.example",
        "how-wide": "1",
        "height": "2",
    }
