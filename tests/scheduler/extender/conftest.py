from contextlib import AsyncExitStack

import pytest
from tests.scheduler.extender.extender_server import ExtenderServer


@pytest.fixture
async def stack():
    async with AsyncExitStack() as held:
        yield held


@pytest.fixture
async def server(stack):
    return await stack.enter_async_context(ExtenderServer())


@pytest.fixture
async def other(stack):
    return await stack.enter_async_context(ExtenderServer())
