"""Dumps, and comparisons of them, in one go."""

from bayplan.cache.cache import Cache
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.scheduler.cache_comparison import Difference, Dump, compare_steps, dump_held


def held(cache: Cache, queue: SchedulingQueue) -> Dump:
    """All that is held, at this very moment."""
    dump = Dump()
    for _ in dump_held(dump, cache, queue):
        pass
    return dump


def compare(held: Dump, listed: Dump) -> list[Difference]:
    """What differs, without the steps in which nothing does."""
    return [each for each in compare_steps(held, listed) if each is not None]
