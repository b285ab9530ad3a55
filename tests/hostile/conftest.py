"""A bound on every test here: whatever a test gives the scheduler, it must be done with it in half a minute."""

import signal

import pytest
from tests.hostile.world import World

SECONDS = 30


@pytest.fixture(autouse=True)
def bounded_time():
    """Fails a test that hangs; it takes well under a second otherwise."""

    def give_up(signum, frame):
        raise TimeoutError(f"not done after {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def world() -> World:
    """Four nodes with a pod on each."""
    return World()
