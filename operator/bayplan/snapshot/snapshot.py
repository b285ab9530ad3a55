"""A snapshot of a live cluster: everything that decisions depend on, and nothing else."""

import secrets
from collections.abc import Awaitable, Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from bayplan.api.kinds import Resource
from bayplan.snapshot.document import document
from bayplan.snapshot.kinds import ESSENTIAL, KINDS, right_to_list
from bayplan.snapshot.listing import ForbiddenError, Listed
from bayplan.snapshot.redaction import Redaction

_KEY_BYTES = 32


@dataclass(slots=True)
class Snapshot:
    """The objects of a cluster, and what there is to say about how they were read."""

    objects: list[tuple[Resource, Any]] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    """Objects that are left out because they cannot be read, a line each."""
    forbidden: list[str] = field(default_factory=list)
    """Kinds that are left out because the right to list them is missing, a line each."""

    @property
    def counts(self) -> dict[str, int]:
        """How many objects there are, by kind, in the order in which they were read."""
        found: dict[str, int] = {}
        for resource, _ in self.objects:
            found[resource.kind] = found.get(resource.kind, 0) + 1
        return found


class MissingRightsError(Exception):
    """Raised where kinds may not be listed; the text has a line for each right that is missing, and what to do."""


async def take_snapshot(
    list_kind: Callable[[Resource], Awaitable[Listed]], *, ignore_forbidden: bool = False
) -> Snapshot:
    """Read all kinds one after the other, each as it was at one moment, and return what was read.

    A kind that the API server does not have has no objects. With `ignore_forbidden` a kind that may not be listed is
    left out, but for nodes and pods.

    Raises:
        MissingRightsError: with all the rights that are missing.
        ListingError: a kind cannot be listed for another reason.
        CredentialsError: there is no way to log in.
    """
    found = Snapshot()
    missing: list[str] = []
    needed: list[str] = []
    for resource in KINDS:
        try:
            listed = await list_kind(resource)
        except ForbiddenError as error:
            line = f"{error}; the right to {right_to_list(resource)} is missing"
            if ignore_forbidden and resource.plural not in ESSENTIAL:
                found.forbidden.append(line)
            else:
                missing.append(line)
                needed += [resource.plural] if resource.plural in ESSENTIAL else []
            continue
        found.objects.extend((resource, obj) for obj in listed.objects)
        found.unreadable.extend(listed.unreadable)
    if missing:
        advice = "Give the rights"
        if needed:
            advice += f": {' and '.join(needed)} cannot be left out"
        else:
            advice += ", or --ignore-forbidden to go without these kinds"
        raise MissingRightsError("\n".join((*missing, f"{advice}.")))
    return found


def pieces(snapshot: Snapshot, *, redact: bool = False, kept_labels: Collection[str] = ()) -> Iterator[bytes]:
    """Return the file's content piece by piece; redacted by a key that nobody keeps, if asked for."""
    if not redact:
        return document(snapshot.objects)
    redaction = Redaction([obj for _, obj in snapshot.objects], secrets.token_bytes(_KEY_BYTES), kept_labels)
    return document((resource, redaction(obj)) for resource, obj in snapshot.objects)
