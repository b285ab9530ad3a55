import pytest
from tests.scheduler.preemption.scene import Scene


@pytest.fixture
async def scene():
    return Scene()
