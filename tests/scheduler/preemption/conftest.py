import pytest
from tests.scheduler.preemption.scene import Scene


@pytest.fixture
async def scene():
    made = Scene()
    made.dispatcher.start()
    return made
