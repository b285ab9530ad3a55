import pytest
from tests.faults.api_server import FakeApiServer
from tests.faults.certificates import Authority


@pytest.fixture
def authority():
    return Authority()


@pytest.fixture
async def server():
    """An API server that takes everybody and holds nothing yet."""
    async with FakeApiServer() as fake:
        yield fake
