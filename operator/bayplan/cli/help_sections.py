"""How the help of all commands looks: flags by subject, and examples at the end."""

from collections.abc import Sequence
from typing import Any

import click

OPTIONS = "Options"
"""Where flags without a section are."""


class SectionOption(click.Option):
    """A flag that the help lists under `section`."""

    def __init__(self, names: Sequence[str], *, section: str = OPTIONS, **attributes: Any) -> None:  # noqa: ANN401  click's
        super().__init__(names, **attributes)
        self.section = section


class _Sections(click.Command):
    """Help with the flags in the order of their sections, those of no section first, and with examples at the end."""

    def __init__(self, name: str | None, *, examples: Sequence[str] = (), **attributes: Any) -> None:  # noqa: ANN401  click's
        super().__init__(name, **attributes)
        self.examples = examples

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the flags, each section under its title."""
        sections: dict[str, list[tuple[str, str]]] = {OPTIONS: []}
        for option in self.get_params(ctx):
            if isinstance(option, click.Option) and (record := option.get_help_record(ctx)) is not None:
                section = option.section if isinstance(option, SectionOption) else OPTIONS
                sections.setdefault(section, []).append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, and then what the epilog says."""
        if self.examples:
            with formatter.section("Examples"):
                # Never wrapped: an example is there to be pasted.
                formatter.write("".join(f"{'':{formatter.current_indent}}{each}\n" for each in self.examples))
        super().format_epilog(ctx, formatter)


class Command(_Sections):
    """A command as `click.command(cls=Command, examples=...)` makes it; each example is one line for a shell."""


class CommandGroup(_Sections, click.Group):
    """A command that has commands, and the same help."""

    command_class = Command

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return their names in the order in which they are there."""
        return list(self.commands)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the flags and then the commands."""
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)
