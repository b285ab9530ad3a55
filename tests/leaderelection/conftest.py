import pytest
from tests.leaderelection.simulation import Cluster


@pytest.fixture
def cluster():
    return Cluster()


@pytest.fixture
def leader(cluster):
    made = cluster.contender("first").start()
    cluster.run(1)
    assert made.leading
    assert made.gate.is_open
    return made


@pytest.fixture
def standby(cluster, leader):
    made = cluster.contender("second").start()
    cluster.run(5)
    assert not made.leading
    assert not made.gate.is_open
    return made
