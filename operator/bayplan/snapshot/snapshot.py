"""The file of a snapshot: there is the whole of it, or what was there before."""

import gzip
import os
import secrets
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Final, cast

import msgspec
from msgspec import structs

from bayplan.api.device_objects import DeviceClass, DeviceClassSpec
from bayplan.api.kinds import CLAIM_TEMPLATES, CRD_POD_GROUPS, NODES, POD_GROUPS, PODS, RESOURCES, Resource
from bayplan.api.workload_objects import LimitRange, PriorityClass, RuntimeClass
from bayplan.simulate.workloads import WORKLOADS, DaemonSet, Deployment, Job
from bayplan.snapshot.listing import ForbiddenError, ListedObjects
from bayplan.snapshot.redaction import Redaction

STDOUT: Final = "-"
"""The file name that stands for standard output."""
_GZIP: Final = ".gz"
_LEVEL: Final = 6

ESSENTIAL: Final = frozenset({PODS.plural, NODES.plural})
"""Without these there is no snapshot."""

_KEY_BYTES = 32
_DEVICES: Final = "resource.k8s.io"


def write(name: str, pieces: Iterable[bytes]) -> None:
    """Write the pieces to the file, compressed by gzip if its name ends in .gz; only its owner may read it.

    They are written to a file beside it that takes its place when all of them are on the disk. What is no regular file,
    such as a pipe, is written to as it is.

    Raises:
        OSError: it cannot be written; what was there before is still there.
    """
    if name == STDOUT:
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        return
    path = Path(os.path.realpath(name))
    if path.exists() and not path.is_file():
        with path.open("wb") as opened:
            _write(opened, pieces, compressed=name.endswith(_GZIP))
        return
    with _replacing(path) as opened:
        _write(opened, pieces, compressed=name.endswith(_GZIP))


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    descriptor, beside = tempfile.mkstemp(prefix=f".{path.name[:64]}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            yield opened
            opened.flush()
            os.fsync(opened.fileno())
        Path(beside).replace(path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise


def _write(opened: IO[bytes], pieces: Iterable[bytes], *, compressed: bool) -> None:
    if not compressed:
        opened.writelines(pieces)
        return
    # Without a time, so that equal snapshots are equal files.
    with gzip.GzipFile(fileobj=opened, mode="wb", compresslevel=_LEVEL, filename="", mtime=0) as packed:
        for piece in pieces:
            cast("IO[bytes]", packed).write(piece)


_AS_WORKLOADS: Final = {kind.__name__: kind for kind in WORKLOADS.values()}

KINDS: Final[Sequence[Resource]] = (
    # First, so that what pods name is there unless it was deleted meanwhile.
    PODS,
    NODES,
    Resource(PriorityClass, "scheduling.k8s.io", "priorityclasses"),
    Resource(RuntimeClass, "node.k8s.io", "runtimeclasses"),
    Resource(LimitRange, "", "limitranges", namespaced=True),
    # Simulations make the pods that workloads lack, for which more of them is read than plugins look up.
    *(replace(each, type=_AS_WORKLOADS.get(each.kind, each.type)) for each in (*RESOURCES, CLAIM_TEMPLATES)),
    POD_GROUPS,
    CRD_POD_GROUPS,
    Resource(Deployment, "apps", "deployments", namespaced=True),
    Resource(DaemonSet, "apps", "daemonsets", namespaced=True),
    Resource(Job, "batch", "jobs", namespaced=True),
)
"""All that simulations read, in the order in which it is listed, but for CronJobs and PodTemplates.

Of those a simulation makes pods that the cluster's controllers would not make now.
"""


def right_to_list(resource: Resource) -> str:
    """Return what to ask for, in the words of roles, such as `list jobs.batch`."""
    return f"list {resource.plural}.{resource.group}" if resource.group else f"list {resource.plural}"


def document(objects: Iterable[tuple[Resource, Any]]) -> Iterator[bytes]:
    """Yield the list piece by piece, an object a line; each is of the type of its resource."""
    encoder = msgspec.json.Encoder()
    separator = b"\n"
    yield b'{"apiVersion":"v1","kind":"List","items":['
    for resource, obj in objects:
        head = encoder.encode({"apiVersion": resource.api_version, "kind": resource.kind})
        body = encoder.encode(obj)
        yield separator + head[:-1] + (b"," if len(body) > 2 else b"") + body[1:]
        separator = b",\n"
    yield b"\n]}\n"


@dataclass(slots=True)
class Snapshot:
    """The objects of a cluster, and what there is to say about how they were read."""

    objects: list[tuple[Resource, Any]] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    """Objects that are left out because they cannot be read, a line each."""
    forbidden: list[str] = field(default_factory=list)
    """Kinds that are left out because the right to list them is missing, a line each."""

    @property
    def counts(self) -> Mapping[str, int]:
        """How many objects there are, by kind, in the order in which they were read."""
        return Counter(resource.kind for resource, _ in self.objects)

    def without_devices(self) -> "Snapshot":
        """Return what can be redacted: the expressions that select devices quote names and values.

        Of a class the extended resource stays that it provides: a node offers none of it, and a pod may have it there.
        """
        providing = [
            (
                resource,
                structs.replace(obj, spec=DeviceClassSpec(extended_resource_name=obj.spec.extended_resource_name)),
            )
            for resource, obj in self.objects
            if isinstance(obj, DeviceClass) and obj.spec.extended_resource_name
        ]
        return replace(self, objects=[*(each for each in self.objects if each[0].group != _DEVICES), *providing])


class MissingRightsError(Exception):
    """Raised where kinds may not be listed; the text has a line for each right that is missing, and what to do."""


async def take_snapshot(
    list_kind: Callable[[Resource], Awaitable[ListedObjects]], *, ignore_forbidden: bool = False
) -> Snapshot:
    """Read all kinds one after the other, each as it was at one moment, and return what was read.

    A kind that the API server does not have has no objects. A kind that few clusters have and that may not be listed is
    left out, and with `ignore_forbidden` any other, but for nodes and pods.

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
            if resource.rare or (ignore_forbidden and resource.plural not in ESSENTIAL):
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
    """Return the file's content piece by piece; redacted by a key that nobody keeps, if asked for.

    Devices are left out then.
    """
    if not redact:
        return document(snapshot.objects)
    told = snapshot.without_devices().objects
    redaction = Redaction([obj for _, obj in told], secrets.token_bytes(_KEY_BYTES), kept_labels)
    return document((resource, redaction(obj)) for resource, obj in told)
