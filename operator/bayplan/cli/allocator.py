"""The allocators of the C library and of the HTTP client, kept from holding on to what large objects once took."""

import ctypes
import os
from typing import Final

# mallopt(3), <malloc.h>
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8

_TRIM_BYTES: Final = 128 << 10
_MMAP_BYTES: Final = 64 << 10


def return_large_blocks() -> bool:
    """Have each block of 64 KiB and more go back to the system when it is freed (ADR 20); `bayplan run` begins so.

    glibc lets its thresholds follow the largest block that was freed, up to 32 MiB. From then on large blocks come from
    the heap, and the small ones that stay between them hold all of it. pyreqwest has an allocator of its own, mimalloc,
    which gives back what is free when it is next asked for memory: in a standby, hardly ever. It reads its settings
    when it is imported. Return False where the C library has no such settings: musl and macOS have allocators of their
    own.
    """
    os.environ.setdefault("MIMALLOC_PURGE_DELAY", "0")
    os.environ.setdefault("MIMALLOC_GENERIC_COLLECT", "1000")
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    settings = ((_M_MMAP_THRESHOLD, _MMAP_BYTES), (_M_TRIM_THRESHOLD, _TRIM_BYTES), (_M_ARENA_MAX, 1))
    return all(mallopt(name, value) for name, value in settings)
