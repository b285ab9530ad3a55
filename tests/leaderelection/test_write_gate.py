import time

import pytest
from tests.clock import Clock

from bayplan.api.errors import UnreachableError
from bayplan.leaderelection.write_gate import NotLeadingError, WriteGate, boot_clock


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def gate(clock):
    return WriteGate(clock)


def test_it_is_closed_until_it_is_opened(gate):
    assert not gate.is_open
    with pytest.raises(NotLeadingError):
        gate.seconds_left()


def test_it_is_open_before_its_deadline_and_closed_from_then_on(gate, clock):
    gate.open_until(110.0)
    clock.now = 109.5
    assert gate.is_open
    assert gate.seconds_left() == 0.5
    clock.now = 110.0
    assert not gate.is_open
    with pytest.raises(UnreachableError, match="without the lease"):
        gate.seconds_left()


def test_a_later_deadline_opens_it_again(gate, clock):
    gate.open_until(110.0)
    clock.now = 111.0
    gate.open_until(120.0)
    assert gate.seconds_left() == 9.0


def test_what_is_shut_stays_shut(gate):
    gate.open_until(110.0)
    gate.shut()
    gate.open_until(120.0)
    assert not gate.is_open
    with pytest.raises(NotLeadingError):
        gate.seconds_left()


def test_its_clock_does_not_step_back_and_counts_what_the_machine_was_suspended():
    assert boot_clock() <= boot_clock()
    if hasattr(time, "CLOCK_BOOTTIME"):
        assert boot_clock() >= time.monotonic() - 1.0
