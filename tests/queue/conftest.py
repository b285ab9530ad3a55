import pytest
from tests.queue.scene import Scene


@pytest.fixture
def scene() -> Scene:
    """A queue with nothing in it."""
    return Scene()
