"""Credentials over time: when tokens are fetched again, and that changed certificates are noticed."""

import asyncio
import os

import pytest
from tests.api.credential_scene import kubeconfig, pair
from tests.clock import Clock
from tests.faults.certificates import Authority

from bayplan.api.credentials import Credentials, load_credentials
from bayplan.api.errors import CredentialsError
from bayplan.api.kubeconfig import PemSource
from bayplan.api.token_source import Issued, TokenFile


class Source:
    """Hands out t1, t2, ... or raises what it is told to."""

    def __init__(self, lifetime=60.0, min_interval=0.0):
        self.min_interval = min_interval
        self.lifetime = lifetime
        self.issued = 0
        self.error = None
        self.identity = None

    async def issue(self):
        await asyncio.sleep(0)
        if self.error:
            raise self.error
        self.issued += 1
        return Issued(f"t{self.issued}", self.identity, self.lifetime)


async def test_a_token_file_is_read_again_after_a_minute_and_not_before(tmp_path):
    clock = Clock(1000.0)
    (tmp_path / "token").write_text("one")
    credentials = Credentials(server="http://x", source=TokenFile(tmp_path / "token"), clock=clock)
    assert await credentials.token() == "one"
    (tmp_path / "token").write_text("two")
    clock.now += 59
    assert await credentials.token() == "one"
    clock.now += 1
    assert await credentials.token() == "two"


async def test_a_rejected_token_is_fetched_again_at_once_but_not_for_old_news():
    source = Source()
    credentials = Credentials(server="http://x", source=source, clock=Clock(1000.0))
    assert await credentials.token() == "t1"
    credentials.invalidate("t1")
    assert await credentials.token() == "t2"
    credentials.invalidate("t1")
    assert await credentials.token() == "t2"
    credentials.invalidate()
    assert await credentials.token() == "t3"


async def test_a_plugin_is_not_run_for_every_rejected_request():
    clock = Clock(1000.0)
    source = Source(min_interval=10.0)
    credentials = Credentials(server="http://x", source=source, clock=clock)
    for _ in range(5):
        credentials.invalidate(await credentials.token())
    assert source.issued == 1
    clock.now += 10
    assert await credentials.token() == "t2"


async def test_many_callers_at_once_fetch_one_token():
    source = Source()
    credentials = Credentials(server="http://x", source=source)
    assert set(await asyncio.gather(*[credentials.token() for _ in range(20)])) == {"t1"}
    assert source.issued == 1


async def test_a_token_that_cannot_be_renewed_stays_in_use(caplog):
    clock = Clock(1000.0)
    source = Source()
    credentials = Credentials(server="http://x", source=source, clock=clock)
    await credentials.token()
    source.error = CredentialsError("plugin is down")
    clock.now += 60
    assert await credentials.token() == "t1"
    assert "plugin is down" in caplog.text
    source.error = None
    clock.now += 9
    assert await credentials.token() == "t1"
    clock.now += 1
    assert await credentials.token() == "t2"


async def test_without_any_token_the_error_is_raised_until_there_is_one():
    clock = Clock(1000.0)
    source = Source()
    source.error = CredentialsError("plugin is down")
    credentials = Credentials(server="http://x", source=source, clock=clock)
    for _ in range(2):
        with pytest.raises(CredentialsError, match="plugin is down"):
            await credentials.token()
    source.error = None
    clock.now += 10
    assert await credentials.token() == "t1"


def test_a_changed_authority_file_makes_a_new_context_and_generation(tmp_path, authority):
    file = tmp_path / "ca.pem"
    file.write_bytes(authority.pem)
    credentials = Credentials(server="https://x", ca=PemSource("ca", path=file))
    before = credentials.ssl_context()
    assert credentials.ssl_context() is before
    other = Authority("other")
    file.write_bytes(other.pem)
    os.utime(file, (1, 1))
    assert credentials.ssl_context() is not before
    assert (credentials.generation, credentials.ca_pem) == (1, other.pem)


def test_a_file_that_is_touched_or_broken_keeps_the_generation(tmp_path, authority, caplog):
    file = tmp_path / "ca.pem"
    file.write_bytes(authority.pem)
    credentials = Credentials(server="https://x", ca=PemSource("ca", path=file))
    os.utime(file, (1, 1))
    credentials.ssl_context()
    assert credentials.generation == 0
    file.write_bytes(b"half a certif")
    credentials.ssl_context()
    file.unlink()
    credentials.ssl_context()
    assert (credentials.generation, credentials.ca_pem) == (0, authority.pem)
    assert "certificates not reloaded" in caplog.text


async def test_changed_files_are_noticed_by_token_within_a_minute(tmp_path, authority):
    clock = Clock(1000.0)
    user = pair(tmp_path, authority)
    certificate, key = (PemSource(name, path=tmp_path / file) for name, file in user.items())
    credentials = Credentials(server="https://x", certificate=certificate, key=key, clock=clock)
    await credentials.token()
    pair(tmp_path, authority)
    clock.now += 59
    await credentials.token()
    assert credentials.generation == 0
    clock.now += 1
    await credentials.token()
    assert credentials.generation == 1


def test_a_master_is_the_server_in_place_of_the_kubeconfigs(tmp_path):
    path = kubeconfig(tmp_path, cluster={"server": "https://named"})
    assert load_credentials(path, master="https://other:1", environment={}).server == "https://other:1"
    with pytest.raises(CredentialsError, match="--master"):
        load_credentials(path, master="ftp://other", environment={})


def test_a_query_of_a_servers_url_is_not_used_as_in_client_go_and_shows_nowhere(tmp_path, caplog):
    path = kubeconfig(tmp_path, cluster={"server": "https://named"})
    url = "https://other:1/base/?token=secret#part"
    assert load_credentials(path, master=url, environment={}).server == "https://other:1/base"
    assert caplog.text == ""


def test_a_pods_own_token_is_for_its_own_cluster():
    with pytest.raises(CredentialsError, match="--master: needs a kubeconfig"):
        load_credentials(None, master="https://other", environment={"KUBERNETES_SERVICE_HOST": "10.0.0.1"})
