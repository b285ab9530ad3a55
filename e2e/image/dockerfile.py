"""Reads what the Dockerfile here uses of the format: stages, and instructions in their order."""

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: its name in capitals, and what stands after it on one line."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage: the image it starts from, its name or "", and what is done in it."""

    base: str
    name: str
    instructions: tuple[Instruction, ...]

    def last(self, name: str) -> str:
        """Returns the text of the last instruction of a name.

        Raises:
            ValueError: there is none.
        """
        found = [each.text for each in self.instructions if each.name == name]
        if not found:
            raise ValueError(f"the stage has no {name}")
        return found[-1]

    def environment(self) -> dict[str, str]:
        """Returns what its ENV instructions set; `$PATH` and the like are left as they are."""
        texts = [each.text for each in self.instructions if each.name == "ENV"]
        return dict(pair.split("=", 1) for text in texts for pair in text.split())


def read_stages(path: Path) -> list[Stage]:
    """Returns the stages of a Dockerfile; what stands before the first FROM is left out."""
    text = re.sub(r"^\s*#.*\n", "", path.read_text(), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", "", text).splitlines()
    instructions = [Instruction(*line.split(maxsplit=1)) for line in lines if line.strip()]
    stages: list[Stage] = []
    for each in instructions:
        if each.name == "FROM":
            base, _, name = each.text.partition(" AS ")
            stages.append(Stage(base, name, ()))
        elif stages:
            last = stages[-1]
            stages[-1] = Stage(last.base, last.name, (*last.instructions, each))
    return stages


def context_files(dockerignore: Path) -> list[str]:
    """Returns what a .dockerignore that begins with `*` lets through, as it names them."""
    return [line[1:] for line in dockerignore.read_text().splitlines() if line.startswith("!")]
