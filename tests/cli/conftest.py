import pytest


@pytest.fixture(autouse=True)
def _logging_as_it_was(logging_as_it_was):
    """Commands set the whole process's log up."""
