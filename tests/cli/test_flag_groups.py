from dataclasses import dataclass
from typing import Annotated, ClassVar

import click
from click.testing import CliRunner

from bayplan.cli.flag_groups import Flag, command_of_groups, flag_values


@dataclass(frozen=True, kw_only=True)
class Size:
    section: ClassVar = "Size options"

    width: Annotated[int, Flag("--how-wide", type=int)] = 1
    height: Annotated[int, Flag("--height", type=click.IntRange(max=9))] = 2


@dataclass(frozen=True, kw_only=True)
class Paint:
    colour: Annotated[str | None, Flag("--colour", help="Any one.")] = None
    coats: Annotated[tuple[str, ...], Flag("--coat", multiple=True)] = ()


@command_of_groups("draw", examples=("draw --colour red",))
def draw(size: Size, paint: Paint) -> None:
    """Draw it."""
    click.echo(f"{size} {paint}")


def output_of(*arguments):
    return CliRunner().invoke(draw, arguments).output


def test_each_group_gets_its_flags_and_otherwise_its_defaults():
    assert output_of("--colour", "red", "--how-wide", "5", "--coat=a", "--coat=b").strip() == (
        "Size(width=5, height=2) Paint(colour='red', coats=('a', 'b'))"
    )
    assert output_of().strip() == "Size(width=1, height=2) Paint(colour=None, coats=())"


def test_values_are_checked_as_the_flag_says():
    assert "10 is not in the range" in output_of("--height", "10")


def test_help_has_a_section_for_each_group_and_one_for_what_has_none():
    assert output_of("--help").splitlines() == [
        "Usage: draw [OPTIONS]",
        "",
        "  Draw it.",
        "",
        "Options:",
        "  --colour TEXT  Any one.",
        "  --coat TEXT",
        "  --help         Show this message and exit.",
        "",
        "Size options:",
        "  --how-wide INTEGER",
        "  --height INTEGER RANGE  [x<=9]",
        "",
        "Examples:",
        "  draw --colour red",
    ]


def test_a_flag_is_also_the_decorator_of_a_command():
    @click.command()
    @Flag("--colour", default="red")
    def paint(colour: str) -> None:
        click.echo(colour)

    assert CliRunner().invoke(paint, ["--colour", "blue"]).output == "blue\n"


def test_values_to_be_shown_hide_passwords_in_urls_and_leave_out_what_was_not_given():
    assert flag_values(Paint(colour="https://me:hunter2@paint.example", coats=("a", "b")), Size()) == {
        "colour": "https://[hidden]@paint.example",
        "coat": "a,b",
        "how-wide": "1",
        "height": "2",
    }
    assert flag_values(Paint()) == {}
