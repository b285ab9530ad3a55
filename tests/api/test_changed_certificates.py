"""Certificates over time: files that change are noticed."""

import os

from tests.api.credential_scene import Clock, pair
from tests.faults.certificates import Authority

from bayplan.api.credentials import Credentials
from bayplan.api.kubeconfig import PemSource


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
    clock = Clock()
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
