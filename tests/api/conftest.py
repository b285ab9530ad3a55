import pytest
from tests.faults.certificates import Authority


@pytest.fixture
def authority():
    return Authority()
