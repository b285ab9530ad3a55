from dataclasses import dataclass, field

import pytest

from bayplan.controller.recovery import Recovery


@dataclass
class Told:
    """Stands for every part that is asked for something."""

    calls: list[str] = field(default_factory=list)

    def __getattr__(self, name):
        return lambda: self.calls.append(name)


@pytest.fixture
def told():
    return Told()


@pytest.fixture
def recovery(told):
    recovery = Recovery()
    recovery.connect(told, told, told, told)
    return recovery


def test_a_return_has_the_queue_compared_and_ends_kopfs_pause(recovery, told):
    recovery.recovered()
    assert told.calls == ["ask_for_comparison", "end_pause"]


def test_another_history_has_all_listed_anew_and_the_queue_filled_once_the_watches_know(recovery, told, caplog):
    recovery.went_back()
    recovery.went_back()
    assert told.calls == ["forget_versions", "relist", "restart"]
    recovery.recovered()
    assert told.calls[3:] == ["ask_for_fill", "end_pause"]
    recovery.recovered()
    assert told.calls[5:] == ["ask_for_comparison", "end_pause"]
    assert caplog.text.count("resourceVersions went back") == 1
