import pytest
from tests.scheduler.scene import Scene


@pytest.fixture
def scene():
    made = Scene()
    assert made.framework.profile_name == "bayplan"
    return made
