import pytest

from bayplan.cache.cache import Cache


@pytest.fixture
def cache() -> Cache:
    """A cache with nothing in it."""
    return Cache()
