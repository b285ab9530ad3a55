"""The console blocks of a document: commands after `$ `, and what each prints."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import takewhile


@dataclass(frozen=True)
class Command:
    """A command as it is typed, a here-document with it, and the output that is shown."""

    line: int
    text: str
    output: tuple[str, ...]


def blocks_of(text: str) -> list[tuple[str, list[tuple[int, str]]]]:
    """Every fenced block in `text`: what stands after the fence, and the numbered lines."""
    blocks: list[tuple[str, list[tuple[int, str]]]] = []
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            inside = not inside
            if inside:
                blocks.append((line.lstrip()[3:], []))
        elif inside:
            blocks[-1][1].append((number, line))
    return blocks


def commands_of(text: str) -> list[Command]:
    """The commands of every console block in `text`, with the output shown."""
    return [each for kind, lines in blocks_of(text) if kind == "console" for each in _commands(iter(lines))]


def _commands(lines: Iterator[tuple[int, str]]) -> list[Command]:
    found: list[Command] = []
    for number, line in lines:
        if not line.startswith("$ "):
            found[-1] = replace(found[-1], output=(*found[-1].output, line))
            continue
        command = line[2:]
        while command.endswith("\\"):
            command = command[:-1] + next(lines)[1].strip()
        command = re.sub(r"\s+# .*", "", command)
        if heredoc := re.search(r"<<(\w+)$", command):
            body = list(takewhile(lambda each: each[1] != heredoc[1], lines))
            command = "\n".join([command, *(text for _, text in body), heredoc[1]])
        found.append(Command(number, command, ()))
    return found


def matches(shown: tuple[str, ...], printed: list[str]) -> bool:
    """Whether `shown` is what was `printed`, where `...` stands for any number of lines."""
    pattern = "".join(r"(?:.*\n)*?" if line == "..." else re.escape(line.rstrip()) + r" *\n" for line in shown)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in printed)) is not None
