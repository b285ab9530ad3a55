"""What becomes of the soak's own requests."""

import asyncio
from pathlib import Path

import pytest

from bayplan.api.errors import UnreachableError
from e2e.controlplane.credentials import CertificateAuthority, write_kubeconfig
from e2e.soak.errands import NO_ANSWER, Errands


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    authority = CertificateAuthority(tmp_path)
    return write_kubeconfig(
        tmp_path / "kubeconfig",
        url="https://127.0.0.1:1",
        ca_file=authority.certificate_file,
        user={"token": "t"},
    )


async def test_one_errand_of_a_key_is_under_way_at_a_time(kubeconfig: Path) -> None:
    begun: list[str] = []

    async def errand() -> None:
        begun.append("a")
        await asyncio.sleep(0)

    async with Errands(kubeconfig) as errands:
        assert [errands.start("a", errand) for _ in range(2)] == [True, False]
        await asyncio.sleep(0.01)
        assert errands.start("a", errand)
        await asyncio.sleep(0.01)
    assert len(begun) == 2


async def test_an_api_server_that_is_away_is_counted_and_nothing_ends(kubeconfig: Path) -> None:
    over = asyncio.Event()
    async with Errands(kubeconfig) as errands:

        async def errand() -> None:
            try:
                await errands.send("POST", "/api/v1/pods", {})
            finally:
                over.set()

        errands.start("a", errand)
        await over.wait()
        await asyncio.sleep(0.01)
        errands.check()
        assert errands.answers == {NO_ANSWER: 1}
        with pytest.raises(UnreachableError):
            await errands.send("POST", "/api/v1/pods", {})


async def test_a_mistake_of_the_soak_itself_is_not_passed_over(kubeconfig: Path) -> None:
    async def wrong() -> None:
        raise KeyError("wrong")

    async with Errands(kubeconfig) as errands:
        errands.start("a", wrong)
        await asyncio.sleep(0.01)
        with pytest.raises(KeyError):
            errands.check()
