"""Many replays on a Dask cluster; the only module that imports Dask, and nothing imports it unless one is asked for."""

import asyncio
import gzip
import logging
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from typing import Any, Final

import dask
from distributed import Client, KilledWorker, Security
from distributed.core import rpc

from bayplan.config.errors import quote_unprintable
from bayplan.config.types import SchedulerConfiguration
from bayplan.replay.outcome import Outcome
from bayplan.replay.runs import OtherVersionError, Run, outcomes_by

CONNECT_SECONDS: Final = 10.0
"""How long a scheduler may take to answer."""
WORKER_SECONDS: Final = 60.0
"""How long a cluster may have no worker, and how long nothing is done until one looks."""


class ClusterError(Exception):
    """Raised where a cluster cannot be reached, or cannot replay; its text is one line that begins with the address."""


def outcomes_on(
    address: str,
    runs: Sequence[Run],
    configurations: Mapping[str, SchedulerConfiguration],
    *,
    connect_seconds: float = CONNECT_SECONDS,
    worker_seconds: float = WORKER_SECONDS,
) -> Iterator[tuple[Run, Outcome]]:
    """Replay each run on the workers of the scheduler at that address, and yield each as it is done.

    The function that runs is that of `outcomes`, so outcomes are the same. What files of traces hold is sent along. A
    run whose worker dies is run by another. What was started and is not done when one stops iterating is cancelled.

    Raises:
        ClusterError: nothing there is a scheduler of Dask, it goes away, it has no worker for `worker_seconds`, a
            worker or the scheduler has no bayplan or another version, or a run ends its worker over and over.
        InputError: the file of a trace is not what it was.
    """
    shown = quote_unprintable(address)
    # Their lines come at times of their own, and many of them; what matters is raised here.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    _reach(address, shown, connect_seconds)
    try:
        with (
            # A trace is no mistake of who sends it, however large.
            dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}),
            Client(address, timeout=connect_seconds, set_as_default=False) as client,
        ):
            # As a task, and not as data: one that is lost with its worker is made again.
            texts = {
                digest: client.submit(gzip.decompress, gzip.compress(source.text()), pure=False)
                for digest, source in {run.source.digest: run.source for run in runs if run.source.digest}.items()
            }
            yield from outcomes_by(
                client.get_executor(pure=False),
                runs,
                configurations,
                texts=texts,
                look=lambda: client.wait_for_workers(1, worker_seconds),
                look_seconds=worker_seconds,
            )
    except OtherVersionError as error:
        raise ClusterError(f"{shown}: a worker {error}") from None
    except (ImportError, RuntimeError) as error:
        # Scheduler and workers read what is run; Dask tells of what they cannot read as the cause.
        if isinstance(error, RuntimeError) and error.__cause__ is None:
            raise
        reason = _line(error.__cause__ or error)
        raise ClusterError(f"{shown}: the scheduler or a worker has no bayplan of this version: {reason}") from None
    except KilledWorker:
        raise ClusterError(f"{shown}: workers died again and again in the same replay: have they memory?") from None
    except TimeoutError:
        raise ClusterError(f"{shown}: has no worker") from None
    except (CancelledError, OSError) as error:
        raise ClusterError(f"{shown}: went away: {_line(error)}") from None


def _reach(address: str, shown: str, seconds: float) -> None:
    """Ask who is there: a Client waits for ever for what answers nothing, and says little of a wrong address."""

    async def ask() -> Any:  # noqa: ANN401 - whatever answers
        async with rpc(address, connection_args=Security().get_connection_args("client")) as scheduler:
            return await scheduler.identity()

    try:
        kind = asyncio.run(asyncio.wait_for(ask(), seconds))["type"]
    except TimeoutError:
        raise ClusterError(f"{shown}: no scheduler of Dask answers") from None
    except Exception as error:  # noqa: BLE001 - whatever is there may answer anything
        raise ClusterError(f"{shown}: no scheduler of Dask answers: {_line(error)}") from None
    if kind != "Scheduler":
        raise ClusterError(f"{shown}: is no scheduler of Dask, but: {quote_unprintable(str(kind))}")


def _line(error: BaseException) -> str:
    return quote_unprintable(str(error) or type(error).__name__)
