"""Where credentials are found, and what a broken kubeconfig says."""

import asyncio
import base64
import os
import ssl
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.api.credential_scene import EXEC_VERSION, kubeconfig, pair

from bayplan.api.credentials import load_credentials
from bayplan.api.errors import CredentialsError
from bayplan.api.kubeconfig import Entry
from bayplan.api.token_source import Issued, StaticToken, TokenFile, token_source


async def test_the_given_kubeconfig_wins_over_everything(tmp_path):
    given_path = kubeconfig(tmp_path, name="given", user={"token": "given"})
    other = kubeconfig(tmp_path, name="other", user={"token": "other"})
    environment = {"KUBECONFIG": str(other), "KUBERNETES_SERVICE_HOST": "10.0.0.1"}
    assert await load_credentials(given_path, environment=environment).token() == "given"


async def test_the_files_of_the_kubeconfig_variable_are_merged_and_the_first_wins(tmp_path):
    first = kubeconfig(tmp_path, name="first", users=[{"name": "u", "user": {"token": "first"}}], clusters=[])
    second = kubeconfig(tmp_path, name="second", user={"token": "second"}, **{"current-context": "nowhere"})
    environment = {"KUBECONFIG": f"{tmp_path / 'missing'}:{first}:{second}"}
    credentials = load_credentials(None, environment=environment)
    assert await credentials.token() == "first"
    assert credentials.server == "https://127.0.0.1:6443"


async def test_in_a_pod_the_service_account_is_used(tmp_path, authority):
    (tmp_path / "token").write_text("projected\n")
    (tmp_path / "ca.crt").write_bytes(authority.pem)
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}
    credentials = load_credentials(None, environment=environment, service_account_folder=tmp_path)
    assert await credentials.token() == "projected"
    assert (credentials.server, credentials.ca_pem) == ("https://[fd00::1]:6443", authority.pem)


async def test_without_anything_else_the_home_folder_is_read(tmp_path, monkeypatch):
    (tmp_path / ".kube").mkdir()
    kubeconfig(tmp_path / ".kube", user={"token": "home"})
    monkeypatch.setenv("HOME", str(tmp_path))
    assert await load_credentials(None, environment={}).token() == "home"


def test_a_context_can_be_chosen_and_relative_files_are_beside_their_kubeconfig(tmp_path, authority):
    (tmp_path / "ca.pem").write_bytes(authority.pem)
    path = kubeconfig(
        tmp_path,
        user=pair(tmp_path, authority),
        cluster={"certificate-authority": "ca.pem", "tls-server-name": "api"},
        contexts=[{"name": "second", "context": {"cluster": "c", "user": "u"}}],
    )
    credentials = load_credentials(path, "second", environment={})
    assert credentials.ca_pem == authority.pem
    assert credentials.identity_pem.count(b"BEGIN") == 2
    assert credentials.tls_server_name == "api"


def test_inline_data_is_decoded(tmp_path, authority):
    certificate, key = authority.issue("bayplan", [])
    encode = lambda data: base64.b64encode(data).decode()  # noqa: E731
    path = kubeconfig(
        tmp_path,
        user={"client-certificate-data": encode(certificate), "client-key-data": encode(key)},
        cluster={"certificate-authority-data": encode(authority.pem)},
    )
    credentials = load_credentials(path, environment={})
    assert credentials.ca_pem == authority.pem
    context = credentials.ssl_context()
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert [dict(part[0] for part in ca["subject"])["commonName"] for ca in context.get_ca_certs()] == [
        "test authority"
    ]


def test_insecure_is_only_on_request(tmp_path):
    insecure = load_credentials(kubeconfig(tmp_path, cluster={"insecure-skip-tls-verify": True}), environment={})
    assert insecure.ssl_context().verify_mode == ssl.CERT_NONE
    secure = load_credentials(kubeconfig(tmp_path), environment={})
    assert secure.ssl_context().verify_mode == ssl.CERT_REQUIRED
    assert secure.ssl_context().check_hostname


BROKEN = {
    "no current context": ({"current-context": ""}, "no current-context"),
    "missing context": ({"current-context": "nope"}, "context 'nope' does not exist; there are: 'main'"),
    "missing cluster": ({"clusters": []}, "names cluster 'c', which does not exist"),
    "missing user": ({"users": []}, "names user 'u', which does not exist"),
    "clusters not a list": ({"clusters": {"a": 1}}, "clusters: expected a list"),
    "nameless user": ({"users": [{"user": {}}]}, "users[0]: expected a mapping with a name"),
    "user no mapping": ({"users": [{"name": "u", "user": "x"}]}, "users[0].user: expected a mapping"),
    "no server": ({"cluster": {"server": None}}, "clusters[0].cluster.server: required"),
    "server no url": ({"cluster": {"server": "ftp://x"}}, "clusters[0].cluster.server: expected a URL"),
    "server port": ({"cluster": {"server": "https://x:99999999"}}, "clusters[0].cluster.server: expected a URL"),
    "socks proxy": ({"cluster": {"proxy-url": "socks5://u:topsecret@x:1"}}, "proxy: expected a URL"),
    "ca not base64": (
        {"cluster": {"certificate-authority-data": "top!secret"}},
        "clusters[0].cluster.certificate-authority-data: not base64",
    ),
    "ca not pem": (
        {"cluster": {"certificate-authority-data": base64.b64encode(b"topsecret").decode()}},
        "clusters[0].cluster.certificate-authority-data: not a PEM certificate",
    ),
    "ca missing": ({"cluster": {"certificate-authority": "/none"}}, "cannot read /none: No such file"),
    "key alone": ({"user": {"client-key-data": "AAAA"}}, "one is given without the other"),
    "bad pair": (
        {"user": {"client-key-data": "AAAA", "client-certificate-data": "AAAA"}},
        "not a matching, unencrypted PEM pair",
    ),
    "token no string": ({"user": {"token": 7}}, "users[0].user.token: expected a string"),
    "token with newline": ({"user": {"token": "topsecret\nX: y"}}, "token: holds characters"),
    "token file missing": ({"user": {"tokenFile": "none"}}, "none: No such file"),
    "password": ({"user": {"username": "me", "password": "topsecret"}}, "username and password are not supported"),
    "impersonated user": ({"user": {"token": "topsecret", "as": "viewer"}}, "users[0].user.as: impersonation is not"),
    "impersonated groups": (
        {"user": {"token": "topsecret", "as-groups": ["viewers"]}},
        "users[0].user.as-groups: impersonation is not supported",
    ),
    "gcp": ({"user": {"auth-provider": {"name": "gcp"}}}, "'gcp' is not supported; use an exec plugin"),
    "oidc empty": ({"user": {"auth-provider": {"name": "oidc"}}}, "neither id-token nor refresh-token"),
    "exec missing": (
        {"user": {"exec": {"apiVersion": EXEC_VERSION, "command": "no-such-plugin", "installHint": "get it"}}},
        "users[0].user.exec.command: 'no-such-plugin' was not found or cannot be run; get it",
    ),
    "exec old": ({"user": {"exec": {"apiVersion": "v1alpha1", "command": "true"}}}, "exec.apiVersion: must be one of"),
    "exec terminal": (
        {"user": {"exec": {"apiVersion": EXEC_VERSION, "command": "true", "interactiveMode": "Always"}}},
        "needs a terminal",
    ),
    "exec no mapping": ({"user": {"exec": ["topsecret"]}}, "exec.command: required"),
}


@pytest.mark.parametrize(("change", "text"), BROKEN.values(), ids=BROKEN)
def test_a_broken_kubeconfig_names_the_field_and_no_secret(tmp_path, change, text):
    path = kubeconfig(tmp_path, **change)
    with pytest.raises(CredentialsError) as caught:
        load_credentials(path, environment={})
    assert text in str(caught.value)
    assert "topsecret" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["a: [topsecret", "topsecret", "- topsecret", "a: !!python/x topsecret", "\x00topsecret", "\xff"]
)
def test_a_kubeconfig_that_is_no_mapping_is_refused_without_quoting_it(tmp_path, text):
    path = tmp_path / "config"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(CredentialsError, match=r"not valid YAML|expected a mapping") as caught:
        load_credentials(path, environment={})
    assert "topsecret" not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("text", ["kind: Pod\nmetadata: {name: topsecret}", "topsecret: {a: b}"])
def test_another_file_is_called_no_kubeconfig(tmp_path, text):
    (tmp_path / "config").write_text(text)
    with pytest.raises(CredentialsError, match="/config: not a kubeconfig: expected kind Config") as caught:
        load_credentials(tmp_path / "config", environment={})
    assert "topsecret" not in str(caught.value)


def test_a_device_is_there_and_says_nothing():
    with pytest.raises(CredentialsError, match="/dev/null: no current-context is set"):
        load_credentials(Path("/dev/null"), environment={})


async def test_a_kubeconfig_may_come_through_a_pipe_and_be_asked_for_twice(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    text = kubeconfig(tmp_path, user={"token": "piped"}).read_text()
    writing = asyncio.create_task(asyncio.to_thread(fifo.write_text, text))
    for _ in range(2):
        credentials = await asyncio.to_thread(load_credentials, fifo, environment={})
        assert await credentials.token() == "piped"
    await writing


def test_a_missing_kubeconfig_is_named(tmp_path):
    with pytest.raises(CredentialsError, match=r"kubeconfig not found: .*/none"):
        load_credentials(tmp_path / "none", environment={})


def test_a_service_account_without_its_token_is_named(tmp_path, authority):
    with pytest.raises(CredentialsError, match=r"token file .*/token: No such file"):
        load_credentials(None, environment={"KUBERNETES_SERVICE_HOST": "a"}, service_account_folder=tmp_path)
    (tmp_path / "token").write_text(" \n")
    with pytest.raises(CredentialsError, match="is empty"):
        load_credentials(None, environment={"KUBERNETES_SERVICE_HOST": "a"}, service_account_folder=tmp_path)


async def test_the_repr_shows_no_secret(tmp_path, authority):
    credentials = load_credentials(kubeconfig(tmp_path, user={"token": "topsecret"}), environment={})
    await credentials.token()
    assert "topsecret" not in repr(credentials) + repr(StaticToken("topsecret")) + repr(Issued("topsecret"))


async def test_user_and_password_in_the_servers_url_are_neither_used_nor_shown(tmp_path, caplog):
    credentials = load_credentials(
        kubeconfig(tmp_path, cluster={"server": "https://me:topsecret@127.0.0.1:6443/k8s/"}), environment={}
    )
    assert credentials.server == "https://127.0.0.1:6443/k8s"
    assert "topsecret" not in repr(credentials) + caplog.text
    assert "the user and password in its URL are not used" in caplog.text


ANYTHING = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["exec", "token", "name", "config", "command", "auth-provider"]), inner)
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(["exec", "auth-provider", "token", "tokenFile", "username"]), ANYTHING))
def test_any_user_section_is_a_source_or_a_credentials_error(user):
    try:
        source = token_source(Entry("user", Path("/"), user))
    except CredentialsError:
        return
    assert isinstance(source, StaticToken | TokenFile)
