import math

import pytest

from bayplan.plugins.pod_topology_spread.filter_and_score import natural_logarithm


@pytest.mark.parametrize(
    ("number", "bits"),
    [
        (2, "0x1.62e42fefa39efp-1"),
        (3, "0x1.193ea7aad030ap+0"),
        (10, "0x1.26bb1bbb55516p+1"),
        (14, "0x1.51cca16d7bba8p+1"),
        (48, "0x1.ef8383c50bb74p+1"),
        (5002, "0x1.10901f6dc84b9p+3"),
    ],
)
def test_it_is_gos_to_the_last_bit(number: int, bits: str) -> None:
    assert natural_logarithm(number).hex() == bits


def test_it_is_the_logarithm() -> None:
    assert all(abs(natural_logarithm(n) - math.log(n)) <= math.ulp(math.log(n)) for n in range(1, 20_000))
