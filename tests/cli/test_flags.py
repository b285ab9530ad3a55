from dataclasses import dataclass
from typing import ClassVar

import click
import pytest
from click.testing import CliRunner

from bayplan.cli.flags import command, flag_values
from bayplan.config.errors import ConfigurationError, FieldError
from bayplan.config.flags import boolean, flag, seconds


@dataclass(frozen=True, kw_only=True)
class Size:
    section: ClassVar = "Size options"

    width: int = flag("--how-wide INT", "So wide.", default=1, type=int)
    height: int = flag("--height INT", "So high.", default=2, type=click.IntRange(max=9))
    drying: float = flag("--dries DURATION", "Until it is dry; 5s by default.", default=5.0, read=seconds)

    def __post_init__(self):
        if self.width == self.height:
            raise ConfigurationError([FieldError("--height", "must not be the width")])


@dataclass(frozen=True, kw_only=True)
class Paint:
    colour: str | None = flag("--colour NAME", "Any one.")
    coats: tuple[str, ...] = flag("--coat NAME", "One more.", default=())
    gloss: bool | None = flag("--gloss BOOL", "Whether it shines.", read=boolean)
    finish: str = flag("--finish -f matt|satin", "What it is like.", default="matt")
    wet: bool = flag("--wet", "Paint on wet paint.")
    where: str | None = flag("[WALL]", "Which wall.")


@command(examples=("draw --colour red",))
def draw(size: Size, paint: Paint) -> None:
    """Draw it."""
    click.echo(f"{size}\n{paint}\n{flag_values()}")


def output_of(*arguments):
    return CliRunner().invoke(draw, arguments).output


def errors_of(*arguments):
    with pytest.raises(ConfigurationError) as raised:
        CliRunner().invoke(draw, arguments, catch_exceptions=False)
    return [str(error) for error in raised.value.errors]


def test_each_group_gets_its_flags_and_otherwise_its_defaults():
    arguments = ("--colour", "red", "--how-wide", "5", "--coat=a", "--coat=b", "--gloss=t", "--dries=1m", "--wet", "x")
    assert output_of(*arguments).splitlines()[:2] == [
        "Size(width=5, height=2, drying=60.0)",
        "Paint(colour='red', coats=('a', 'b'), gloss=True, finish='matt', wet=True, where='x')",
    ]
    assert output_of().splitlines()[:2] == [
        "Size(width=1, height=2, drying=5.0)",
        "Paint(colour=None, coats=(), gloss=None, finish='matt', wet=False, where=None)",
    ]


def test_values_are_checked_as_the_flag_says():
    assert "10 is not in the range" in output_of("--height", "10")
    assert "'oily' is not one of 'matt', 'satin'" in output_of("-f", "oily")


def test_all_values_that_cannot_be_read_or_do_not_go_together_are_told_at_once():
    assert errors_of("--gloss=maybe", "--dries=soon", "--how-wide=2") == [
        '--dries: Invalid value: "soon": must be a duration such as "10s"',
        "--height: must not be the width",
        '--gloss: Invalid value: "maybe": must be true or false',
    ]


def test_help_has_a_section_for_each_group_and_one_for_what_has_none():
    assert output_of("--help").splitlines() == [
        "Usage: draw [OPTIONS] [WALL]",
        "",
        "  Draw it.",
        "",
        "Positional arguments:",
        "  [WALL]  Which wall.",
        "",
        "Options:",
        "  --colour NAME            Any one.",
        "  --coat NAME              One more.",
        "  --gloss BOOL             Whether it shines.",
        "  -f, --finish matt|satin  What it is like.",
        "  --wet                    Paint on wet paint.",
        "  --help                   Show this message and exit.",
        "",
        "Size options:",
        "  --how-wide INT    So wide.",
        "  --height INT      So high.  [x<=9]",
        "  --dries DURATION  Until it is dry; 5s by default.",
        "",
        "Examples:",
        "  draw --colour red",
    ]


def test_values_to_be_shown_hide_what_follows_the_path_of_a_url():
    shown = output_of("--colour", "https://paint.example/red?token=hunter2#top", "--coat=a?b").splitlines()[2]
    assert "'https://paint.example/red?[hidden]'" in shown
    assert "'coat': 'a?b'" in shown


def test_values_to_be_shown_hide_passwords_in_urls_and_leave_out_what_was_not_given():
    shown = output_of("--colour", "https://me:hunter2@paint.example", "--coat=a", "--coat=b", "--gloss=t")
    assert shown.splitlines()[2] == str(
        {
            "how-wide": "1",
            "height": "2",
            "colour": "https://[hidden]@paint.example",
            "coat": "a,b",
            "gloss": "t",
            "finish": "matt",
            "wet": "False",
        }
    )
