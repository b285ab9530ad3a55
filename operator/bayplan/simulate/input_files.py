"""Files and directories that a simulation is given, and standard input: their text, and how messages call them."""

import gzip
import io
import os
import sys
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, cast

from bayplan.cache.cache import is_finished
from bayplan.cache.pod_info import PodInfo
from bayplan.config.errors import quote_unprintable
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.documents import ClusterFileError, RawObject, raw_objects

STDIN: Final = "-"
"""The file name that stands for standard input."""
MAX_BYTES: Final = 1 << 30
"""Largest file, in bytes; of a compressed one, of what is in it."""
MAX_FILES: Final = 100_000
"""Most files that directories may hold together."""

_CHUNK: Final = 1 << 20
_GZIP: Final = b"\x1f\x8b"
_SUFFIXES: Final = (".yaml", ".yml", ".json", ".ndjson", ".jsonl")
_KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_BAD_GZIP: Final = (EOFError, zlib.error, gzip.BadGzipFile)


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file to be read; `is_found` if a directory was given that holds it."""

    path: str
    is_found: bool = False

    @property
    def shown(self) -> str:
        """The name for messages: one line, whatever bytes it is made of."""
        return quote_unprintable(self.path)


def is_file(name: str) -> bool:
    """Whether `name` stands for standard input, or for a file or directory that is there."""
    return name == STDIN or os.path.exists(name)  # noqa: PTH110  which says of any text whether there is such a file


def input_files(names: Iterable[str]) -> Iterator[InputFile]:
    """Yield the files that `names` stand for: themselves, or those in a directory and below it, in order of name.

    In directories these count: `*.yaml`, `*.yml`, `*.json`, `*.ndjson`, `*.jsonl`, and each of them with `.gz`; but
    nothing hidden, no pipe or device, and no directory behind a link.

    Raises:
        ClusterFileError: a file is given twice or says what others are, or a directory holds none, or too many.
    """
    given: set[str] = set()
    for name in names:
        if name == STDIN or "\0" in name or not Path(name).is_dir():
            key = name if name == STDIN or "\0" in name else os.path.realpath(name)
            if key in given:
                raise ClusterFileError(f"{quote_unprintable(name)}: is given twice")
            _refuse_kustomization(name)
            given.add(key)
            yield InputFile(name)
            continue
        found = False
        for path in _files_in(name):
            _refuse_kustomization(path)
            key = os.path.realpath(path)
            found = True
            if key not in given:
                given.add(key)
                if len(given) > MAX_FILES:
                    raise ClusterFileError(f"{quote_unprintable(name)}: there are more than {MAX_FILES} files")
                yield InputFile(path, is_found=True)
        if not found:
            wanted = ", ".join(f"*{suffix}" for suffix in _SUFFIXES)
            raise ClusterFileError(f"{quote_unprintable(name)}: holds no file {wanted}, with or without .gz")


def _refuse_kustomization(name: str) -> None:
    """Refuse to take what a kustomization begins with for what it makes."""
    if Path(name).name in _KUSTOMIZATIONS:
        advice = "give what `kubectl kustomize` prints of its directory"
        raise ClusterFileError(f"{quote_unprintable(name)}: is a kustomization: {advice}")


def objects_in(names: Iterable[str], *, located: bool = False) -> Iterator[RawObject]:
    """Yield the objects in the files that `names` stand for; with `located` they know in which lines their fields are.

    Raises:
        ClusterFileError: as `input_files`, `read_file` and `raw_objects` do.
    """
    for file in input_files(names):
        data = read_file(file)
        # Directories hold files that are kept for the directory's sake alone.
        if data.strip() or not file.is_found:
            yield from raw_objects(data, file.shown, located=located)


def _files_in(directory: str) -> Iterator[str]:
    def refuse(error: OSError) -> None:
        raise ClusterFileError(f"{quote_unprintable(str(error.filename))}: cannot be read: {error.strerror}")

    for folder, folders, files in os.walk(directory, onerror=refuse):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        for file in sorted(files):
            path = os.path.join(folder, file)  # noqa: PTH118 - names of any bytes
            # Nobody writes to a pipe that only happens to lie there; a broken link is told of when it is read.
            if (
                not file.startswith(".")
                and file.removesuffix(".gz").endswith(_SUFFIXES)
                and (os.path.isfile(path) or not os.path.exists(path))  # noqa: PTH110, PTH113 - as above
            ):
                yield path


def read_file(file: InputFile) -> bytes:
    """Return the bytes of the file, or of standard input; what gzip compressed is unpacked, whatever its name.

    Raises:
        ClusterFileError: it cannot be read, is too large, or is no text.
    """
    try:
        if file.path == STDIN:
            return _read(sys.stdin.buffer, file.shown)
        with Path(file.path).open("rb") as opened:
            return _read(opened, file.shown)
    except (OSError, ValueError) as error:
        if isinstance(error, ClusterFileError):
            raise
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ClusterFileError(f"{file.shown}: cannot be read: {reason}") from None


def _read(file: IO[bytes], name: str, *, may_be_packed: bool = True) -> bytes:
    # Joining a list of them would hold the file twice.
    start, text = b"", io.BytesIO()
    while chunk := file.read(_CHUNK):
        start = start or chunk[: len(_GZIP)]
        is_packed = may_be_packed and start == _GZIP
        if b"\0" in chunk and not is_packed:
            raise ClusterFileError(f"{name}: is not a text file")
        if text.tell() + len(chunk) > MAX_BYTES:
            raise ClusterFileError(f"{name}: is larger than {MAX_BYTES} bytes")
        text.write(chunk)
    if start != _GZIP or not may_be_packed:
        return text.getvalue().removeprefix(b"\xef\xbb\xbf")
    text.seek(0)
    try:
        with gzip.GzipFile(fileobj=text) as unpacked:
            return _read(cast("IO[bytes]", unpacked), name, may_be_packed=False)
    except _BAD_GZIP as error:
        problem = "is cut off" if isinstance(error, EOFError) else "is not what gzip writes"
        raise ClusterFileError(f"{name}: {problem}") from None


def waiting_pods(objects: ClusterObjects) -> Iterator[PodInfo]:
    """Yield the pods that wait for a node, whichever scheduler they name."""
    for info in objects.pods:
        if not info.pod.spec.node_name and not info.is_terminating and not is_finished(info.pod):
            yield info


def input_notes(objects: ClusterObjects, profiles: Collection[str], counted: PodInfo | None) -> Iterator[str]:
    """Yield a line for what keeps pods from being tried: no nodes, or a scheduler's name that is none of `profiles`."""
    waiting = Counter(info.pod.spec.scheduler_name for info in waiting_pods(objects))
    if not objects.nodes and (waiting or counted is not None):
        why = (
            "all nodes are removed"
            if objects.drained
            else "the files hold no nodes, which `kubectl get nodes -o json` gives"
        )
        yield f"no pod can be placed: {why}"
    if counted is None and waiting and not waiting.keys() & set(profiles):
        name, count = waiting.most_common(1)[0]
        pods = "1 pod that waits names" if count == 1 else f"{count} pods that wait name"
        yield f"no pod is tried: {pods} the scheduler {name}; to try it give --scheduler-name {name}"
        return
    evicted = sum((Counter(each.scheduler_names) for each in objects.drained), Counter[str]())
    for name, count in sorted(evicted.items()):
        if name not in profiles:
            pods = (
                "1 evicted pod is not placed: it names"
                if count == 1
                else f"{count} evicted pods are not placed: they name"
            )
            yield f"{pods} the scheduler {name}; to try it give --scheduler-name {name}"
