import gc
import os
import tracemalloc
from collections.abc import Callable, Iterator

import pytest
from hypothesis import settings

# The machine may be busy, so no deadline; in CI every run tries the same cases.
settings.register_profile("bayplan", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("bayplan")


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
