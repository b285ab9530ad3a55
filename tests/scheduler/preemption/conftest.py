import pytest
from tests.scheduler.preemption.scene import Scene

from bayplan.scheduler import dispatcher as dispatcher_module


@pytest.fixture
async def scene(monkeypatch):
    monkeypatch.setattr(dispatcher_module, "_RETRY_DELAYS_SECONDS", (0.0, 0.0, 0.0))
    made = Scene()
    made.dispatcher.start()
    return made
