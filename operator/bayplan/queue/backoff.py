"""How long a pod waits after a failed attempt (upstream: backend/queue/backoff_queue.go).

Back-off ends on whole seconds, so that all pods of one second come back together, in priority order.
"""

from math import floor


def backoff_seconds(count: int, initial: int, maximum: int) -> int:
    """Return the wait after `count` failures, in seconds: `initial`, doubled each time, at most `maximum`."""
    if count <= 0:
        return 0
    shift = count - 1
    if initial > maximum >> shift:
        return maximum
    return initial << shift


def backoff_expiration(timestamp: float, count: int, initial: int, maximum: int) -> int | None:
    """Return the whole second up to which a pod that failed at `timestamp` waits; None when it need not wait."""
    if count <= 0 or maximum == 0:
        return None
    return floor(timestamp + backoff_seconds(count, initial, maximum))


def is_backing_off(expiration: int | None, now: float) -> bool:
    """Return whether the pod still waits at `now`: the second in which its back-off ends belongs to the wait."""
    return expiration is not None and expiration >= floor(now)


def release_time(expiration: int) -> float:
    """Return the first moment at which `is_backing_off` is false."""
    return float(expiration + 1)
