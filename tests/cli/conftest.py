import pytest


@pytest.fixture(autouse=True)
def _sets_up_logging(logging_as_it_was):
    """Every command may set up the log of its process, which here is that of the tests after it."""
