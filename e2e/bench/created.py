"""The file in which the loader says what it created."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Created:
    """One object that the API server took; times in monotonic seconds, which all processes share."""

    name: str
    uid: str
    sent: float
    answered: float


def write_created(path: Path, rows: Iterable[Created]) -> None:
    """Writes one line per object: name, UID, when the request was sent, when it was answered."""
    path.write_text("".join(f"{row.name} {row.uid} {row.sent:.6f} {row.answered:.6f}\n" for row in rows))


def read_created(path: Path) -> list[Created]:
    """Returns what `write_created` wrote."""
    rows = (line.split() for line in path.read_text().splitlines())
    return [Created(name, uid, float(sent), float(answered)) for name, uid, sent, answered in rows]
