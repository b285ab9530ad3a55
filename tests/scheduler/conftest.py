import pytest
from tests.scheduler.handler_scene import HandlerScene
from tests.scheduler.scene import Scene


@pytest.fixture
def scene():
    made = Scene()
    assert made.framework.profile_name == "bayplan"
    return made


@pytest.fixture
def handlers():
    return HandlerScene()
