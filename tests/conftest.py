import gc
import logging
import os
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator

import pytest
from hypothesis import settings
from tests.distributions_searched_once import distributions_searched_once

# The machine may be busy, so no deadline; in CI every run tries the same cases.
settings.register_profile("bayplan", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("bayplan")


def pytest_collection_finish() -> None:
    """Spares the garbage collector what lives until the end: a million objects of tests and their cases."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _distributions_searched_once() -> Iterator[None]:
    with distributions_searched_once():
        yield


@pytest.fixture(autouse=True, scope="session")
def _no_roots_of_the_system() -> Iterator[None]:
    """Spares reading 150 certificates for each client, 40 ms of CPU: no test meets a server that they vouch for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", os.devnull)
        yield


@pytest.fixture
def logging_as_it_was() -> Iterator[None]:
    """Leaves loggers, handlers and hooks as they were, whatever the test sets up."""
    manager = logging.Logger.manager.loggerDict
    loggers = [logging.getLogger(), *(each for each in manager.values() if isinstance(each, logging.Logger))]
    before = [(each, each.level, each.handlers[:]) for each in loggers]
    hooks = threading.excepthook, sys.unraisablehook
    yield
    logging.captureWarnings(False)
    threading.excepthook, sys.unraisablehook = hooks
    for each in [each for each in manager.values() if isinstance(each, logging.Logger)]:
        each.setLevel(logging.NOTSET)
    for each, level, handlers in before:
        each.setLevel(level)
        for added in set(each.handlers).difference(handlers):
            added.close()
        each.handlers[:] = handlers


@pytest.fixture
def allocated() -> Iterator[Callable[[], int]]:
    """How many bytes the Python objects take that were made since the first call."""

    def count() -> int:
        if not tracemalloc.is_tracing():
            tracemalloc.start()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    yield count
    tracemalloc.stop()
