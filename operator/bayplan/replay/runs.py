"""Many replays, by whatever executes them, and the file of those that are done."""

import errno
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, ProcessPoolExecutor, wait
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import structs

from bayplan import __version__
from bayplan.config.convert import to_effective_yaml
from bayplan.config.errors import InputError, quote_unprintable
from bayplan.config.types import SchedulerConfiguration
from bayplan.replay.generators import GENERATORS, generate
from bayplan.replay.outcome import Outcome
from bayplan.replay.replay import PoolSettings, Replay
from bayplan.replay.trace import Trace, decode_trace
from bayplan.simulate.decode_errors import field_error
from bayplan.simulate.input_files import STDIN, InputFile, read_file

_RESULT: Final = b'{"run":'
"""How each line of the file of results begins."""


class WorkerDiedError(Exception):
    """A process that replayed ended, as one does that is killed for its memory; the text says what to do."""


class TraceSource(msgspec.Struct, frozen=True, rename="camel"):
    """Where a trace comes from: a file, or a generator with what it is given."""

    name: str
    digest: str = ""
    """Of the file."""
    seed: int = 0
    hours: float = 0.0
    scale: float = 0.0
    hints: float | None = None
    """How wrong its pods are about how long they run; None if they say nothing."""

    @property
    def trace(self) -> Trace:
        """The trace, read or made anew unless it was the last one."""
        return _trace(self)

    def text(self) -> bytes:
        """Return what the file holds.

        Raises:
            InputError: it cannot be read, or is not what it was.
        """
        file = InputFile(self.name)
        text = read_file(file)
        if _digest(text) != self.digest:
            raise InputError(f"{file.shown}: is no more what it was when the replay began")
        return text


class Run(msgspec.Struct, frozen=True, rename="camel"):
    """One replay: a trace, a configuration, what becomes of nodes, and who replays."""

    source: TraceSource
    configuration_digest: str
    settings: PoolSettings
    version: str = __version__

    @property
    def key(self) -> "Run":
        """What it shares with every replay that gives the same: a trace in a file counts by its content."""
        return structs.replace(self, source=structs.replace(self.source, name="")) if self.source.digest else self


class OtherVersionError(Exception):
    """Raised where a run is of another version of bayplan than who is to replay it."""


class Done(msgspec.Struct, frozen=True, rename="camel"):
    """A run with its outcome: a line of the file of results."""

    run: Run
    outcome: msgspec.Raw
    """An Outcome, if this version ran it."""


_last_trace: dict[TraceSource, Trace] = {}
"""The trace that was asked for last, which most runs one after the other share."""


def _trace(source: TraceSource, text: bytes | None = None) -> Trace:
    """The trace of a source; `text` is what its file holds, for where that is not to be read."""
    known = _last_trace.get(source)
    if known is None:
        _last_trace.clear()
        if source.name in GENERATORS:
            known = generate(source.name, seed=source.seed, hours=source.hours, scale=source.scale, hints=source.hints)
        else:
            known = decode_trace(InputFile(source.name), source.text() if text is None else text)
        _last_trace[source] = known
    return known


def _digest(text: bytes) -> str:
    return sha256(text).hexdigest()


def sources(name: str, *, seeds: int, hours: float, scale: float, hints: float | None = None) -> list[TraceSource]:
    """Return the generator of that name with the seeds from 1 on, or the file.

    Raises:
        InputError: the file cannot be read, is standard input, or is no trace.
    """
    if name in GENERATORS:
        return [TraceSource(name, seed=seed, hours=hours, scale=scale, hints=hints) for seed in range(1, seeds + 1)]
    if name == STDIN:
        raise InputError("-: a trace is read more than once: give a file")
    if not os.path.exists(name):  # noqa: PTH110 - a name that is too long is no file, and no error of its own
        made_up = ", ".join(GENERATORS)
        raise InputError(f"{quote_unprintable(name)}: neither a file nor a made-up trace, which are {made_up}")
    file = InputFile(name)
    text = read_file(file)
    source = TraceSource(name, _digest(text))
    _last_trace.clear()
    _last_trace[source] = decode_trace(file, text)
    return [source]


def digest_of(configuration: SchedulerConfiguration) -> str:
    """Return what two configurations have in common only if they decide alike."""
    return _digest(to_effective_yaml(configuration).encode())


def results_in(path: Path) -> dict[Run, Outcome]:
    """Return what a file of results holds of this version, by the keys of runs; nothing if it is not there yet.

    A last line that was begun and not ended, as when the machine stopped, is cut off.

    Raises:
        InputError: it cannot be read, or a line of it is no result.
    """
    if not path.exists():
        return {}
    found: dict[Run, Outcome] = {}
    file = InputFile(str(path))
    data = read_file(file)
    torn = data[data.rfind(b"\n") + 1 :]
    # What does not begin as a result does is somebody else's, and an error.
    if not _RESULT.startswith(torn[: len(_RESULT)]):
        torn = b""
    for number, line in enumerate(data.removesuffix(torn).splitlines(), 1):
        try:
            done = msgspec.json.decode(line, type=Done)
            if done.run.version == __version__:
                found[done.run.key] = msgspec.json.decode(done.outcome, type=Outcome)
        except msgspec.DecodeError as error:
            raise InputError(f"{file.shown}:{number}: {field_error(error)}") from None
    if torn:
        os.truncate(path, path.stat().st_size - len(torn))
    return found


def keep_result(path: Path, run: Run, outcome: Outcome) -> None:
    """Add a line to the file of results, whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    line = msgspec.json.encode(Done(run, msgspec.Raw(msgspec.json.encode(outcome)))) + b"\n"
    with path.open("ab", buffering=0) as opened:
        before = opened.tell()
        if opened.write(line) < len(line):
            opened.truncate(before)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


def outcomes(
    runs: Sequence[Run], configurations: Mapping[str, SchedulerConfiguration]
) -> Iterator[tuple[Run, Outcome]]:
    """Replay each run in as many processes as there are cores, and yield each as it is done.

    The configuration of a run stands under its digest.

    Raises:
        WorkerDiedError: a process ended; what was yielded is right.
    """
    workers = min(len(runs), os.cpu_count() or 1)
    if workers <= 1:
        for run in runs:
            yield run, _outcome(run, configurations[run.configuration_digest])
        return
    # A worker ends on Ctrl-C without a word.
    context = get_context("spawn")
    with ProcessPoolExecutor(workers, context, signal.signal, (signal.SIGINT, signal.SIG_DFL)) as executor:
        try:
            yield from outcomes_by(executor, runs, configurations)
        except BrokenExecutor:
            told = (
                "a process that replayed was ended, perhaps for want of memory; what --results keeps is not run again"
            )
            raise WorkerDiedError(told) from None


def outcomes_by(
    executor: Executor,
    runs: Sequence[Run],
    configurations: Mapping[str, SchedulerConfiguration],
    *,
    texts: Mapping[str, Any] | None = None,
    look: Callable[[], object] = lambda: None,
    look_seconds: float | None = None,
) -> Iterator[tuple[Run, Outcome]]:
    """Have an executor replay each run, and yield each as it is done.

    `texts` has what files of traces hold by their digests, as the executor takes it, for where they cannot be read.
    `look` is called whenever nothing was done for `look_seconds`. What it raises ends the runs, and so does what a run
    raises.
    """
    given = texts or {}
    started = {
        executor.submit(_outcome, run, configurations[run.configuration_digest], given.get(run.source.digest)): run
        for run in runs
    }
    left = {*started}
    while left:
        done, left = wait(left, look_seconds, FIRST_COMPLETED)
        for future in done:
            yield started[future], future.result()
        if not done:
            look()


_turn: Final = threading.Lock()
"""A worker of Dask may have threads: replays in them take turns, as they share what the process keeps."""


def _outcome(run: Run, configuration: SchedulerConfiguration, text: bytes | None = None) -> Outcome:
    if run.version != __version__:
        raise OtherVersionError(f"has bayplan {__version__}, and {run.version} is needed")
    with _turn:
        return Replay(_trace(run.source, text), configuration, run.settings).run()
