import pytest
from tests.scheduler.preemption.scene import Scene


@pytest.fixture
async def scene():
    made = Scene()
    yield made
    await made.dispatcher.drain(binds_seconds=0.0, calls_seconds=0.0)
