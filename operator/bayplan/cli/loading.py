"""Loading modules without the garbage collector, which finds nothing in what is there to stay."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def nothing_collected() -> Iterator[None]:
    """Keep the collector away from what the block makes, then and for good: of imports it takes a fifth of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
