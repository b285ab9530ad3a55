import asyncio
import base64
import json
import os
import ssl
import stat
import sys
from pathlib import Path

import pytest
import yaml
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from tests.faults.certificates import Authority

from bayplan.api.credentials import Credentials, CredentialsError, load_credentials
from bayplan.api.kubeconfig import Entry, PemSource
from bayplan.api.proxy import proxy_from_environment
from bayplan.api.token_source import ExecPlugin, Issued, OidcToken, StaticToken, TokenFile, token_source

EXEC_VERSION = "client.authentication.k8s.io/v1"


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


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


def kubeconfig(tmp_path, *, name="config", user=None, cluster=None, **top):
    document = {
        "current-context": "main",
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        **top,
    }
    path = tmp_path / name
    path.write_text(yaml.safe_dump(document))
    return path


def plugin(tmp_path, status, *, code=0, name="plugin"):
    """Write an exec plugin that counts its runs in the file `runs`."""
    path = tmp_path / name
    answer = json.dumps({"apiVersion": EXEC_VERSION, "kind": "ExecCredential", "status": status})
    path.write_text(
        f"#!{sys.executable}\nimport sys\nopen({str(tmp_path / 'runs')!r}, 'a').write('x')\n"
        f"sys.stderr.write('stderr-secret')\nprint({answer!r})\nsys.exit({code})\n"
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {"exec": {"apiVersion": EXEC_VERSION, "command": str(path)}}


def runs(tmp_path):
    return len((tmp_path / "runs").read_text())


@pytest.fixture
def authority():
    return Authority()


def pair(tmp_path, authority):
    certificate, key = authority.issue("bayplan", [])
    (tmp_path / "client.crt").write_bytes(certificate)
    (tmp_path / "client.key").write_bytes(key)
    return {"client-certificate": "client.crt", "client-key": "client.key"}


# Finding the configuration.


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
    (tmp_path / "namespace").write_text("packing")
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}
    credentials = load_credentials(None, environment=environment, service_account_folder=tmp_path)
    assert await credentials.token() == "projected"
    assert (credentials.server, credentials.namespace) == ("https://[fd00::1]:6443", "packing")
    assert credentials.ca_pem == authority.pem


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
        contexts=[{"name": "second", "context": {"cluster": "c", "user": "u", "namespace": "ns"}}],
    )
    credentials = load_credentials(path, "second", environment={})
    assert credentials.ca_pem == authority.pem
    assert credentials.identity_pem.count(b"BEGIN") == 2
    assert (credentials.namespace, credentials.tls_server_name) == ("ns", "api")


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
    "missing context": ({"current-context": "nope"}, "context 'nope' does not exist"),
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
    assert "topsecret" not in repr(credentials) + str(vars(credentials)["_source"]) + repr(Issued("topsecret"))


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


# Tokens over time.


async def test_a_token_file_is_read_again_after_a_minute_and_not_before(tmp_path):
    clock = Clock()
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
    credentials = Credentials(server="http://x", source=source, clock=Clock())
    assert await credentials.token() == "t1"
    credentials.invalidate("t1")
    assert await credentials.token() == "t2"
    credentials.invalidate("t1")
    assert await credentials.token() == "t2"
    credentials.invalidate()
    assert await credentials.token() == "t3"


async def test_a_plugin_is_not_run_for_every_rejected_request():
    clock = Clock()
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
    clock = Clock()
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
    clock = Clock()
    source = Source()
    source.error = CredentialsError("plugin is down")
    credentials = Credentials(server="http://x", source=source, clock=clock)
    for _ in range(2):
        with pytest.raises(CredentialsError, match="plugin is down"):
            await credentials.token()
    source.error = None
    clock.now += 10
    assert await credentials.token() == "t1"


async def test_an_exec_plugin_is_run_again_shortly_before_its_token_expires(tmp_path):
    user = plugin(tmp_path, {"token": "exec-token", "expirationTimestamp": "2026-01-01T00:10:00Z"})
    clock = Clock()
    entry = Entry("users[0].user", tmp_path, user)
    source = ExecPlugin(entry, wall_clock=lambda: 1767225600.0)
    credentials = Credentials(server="http://x", source=source, clock=clock)
    assert await credentials.token() == "exec-token"
    clock.now += 569
    assert await credentials.token() == "exec-token"
    assert runs(tmp_path) == 1
    clock.now += 1
    assert await credentials.token() == "exec-token"
    assert runs(tmp_path) == 2


async def test_an_exec_plugin_may_give_a_certificate_which_makes_a_new_generation(tmp_path, authority):
    certificate, key = authority.issue("bayplan", [])
    status = {"clientCertificateData": certificate.decode(), "clientKeyData": key.decode()}
    credentials = load_credentials(kubeconfig(tmp_path, user=plugin(tmp_path, status)), environment={})
    assert credentials.identity_pem is None
    assert await credentials.token() is None
    assert credentials.identity_pem.startswith(certificate)
    assert credentials.generation == 1


@pytest.mark.parametrize(
    ("status", "code", "text"),
    [
        ({"token": "topsecret"}, 3, "process returned 3"),
        (None, 0, "printed no status"),
        ({}, 0, "neither a token nor a certificate"),
        ({"clientCertificateData": "x"}, 0, "neither a token nor a certificate"),
        ({"clientCertificateData": "topsecret", "clientKeyData": "topsecret"}, 0, "PEM pair"),
        ({"token": "topsecret", "expirationTimestamp": "soon"}, 0, "expirationTimestamp is no time"),
        ({"token": "top secret"}, 0, "holds characters"),
    ],
)
async def test_a_failing_exec_plugin_is_named_and_its_output_is_not_repeated(tmp_path, status, code, text):
    credentials = load_credentials(kubeconfig(tmp_path, user=plugin(tmp_path, status, code=code)), environment={})
    with pytest.raises(CredentialsError, match=text) as caught:
        await credentials.token()
    assert "secret" not in str(caught.value)


async def test_an_exec_plugin_beside_the_kubeconfig_gets_its_arguments_and_environment(tmp_path):
    script = tmp_path / "bin.sh"
    status = """{"token":"'"$1-$SECRET"'"}"""
    answer = f'{{"apiVersion":"{EXEC_VERSION}","kind":"ExecCredential","status":{status}}}'
    script.write_text(f"#!/bin/sh\necho '{answer}'\n")
    script.chmod(0o700)
    spec = {
        "command": "./bin.sh",
        "apiVersion": EXEC_VERSION,
        "args": ["arg"],
        "env": [{"name": "SECRET", "value": "env"}],
    }
    credentials = load_credentials(kubeconfig(tmp_path, user={"exec": spec}), environment={})
    assert await credentials.token() == "arg-env"


def jwt(expires):
    encode = lambda value: base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")  # noqa: E731
    return f"{encode({'alg': 'none'})}.{encode({'exp': expires})}.sig"


@pytest.fixture
async def provider(tmp_path, authority):
    """An OpenID provider over TLS of its own authority: its url, and the refresh tokens it saw."""
    app = web.Application()
    grants = []

    async def discover(request):
        return web.json_response({"token_endpoint": f"https://127.0.0.1:{request.url.port}/token"})

    async def token(request):
        form = await request.post()
        grants.append((form["refresh_token"], request.headers["Authorization"]))
        return web.json_response({"id_token": jwt(2000), "refresh_token": f"r{len(grants) + 1}"})

    app.router.add_get("/.well-known/openid-configuration", discover)
    app.router.add_post("/token", token)
    runner = web.AppRunner(app, shutdown_timeout=0.01)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=authority.server_context(tmp_path, ["127.0.0.1"]))
    await site.start()
    yield {"url": f"https://127.0.0.1:{runner.addresses[0][1]}", "grants": grants}
    await runner.cleanup()


def oidc(provider, authority, **config):
    return {
        "client-id": "me",
        "client-secret": "topsecret",
        "idp-issuer-url": provider["url"] + "/",
        "refresh-token": "r1",
        **({"idp-certificate-authority-data": base64.b64encode(authority.pem).decode()} if authority else {}),
        **config,
    }


async def test_an_openid_token_is_used_until_it_expires_and_then_refreshed_over_verified_tls(
    tmp_path, authority, provider
):
    wall = 1000.0
    entry = Entry("user", tmp_path, {})
    config = oidc(provider, authority, **{"id-token": jwt(1100)})
    source = OidcToken(entry, config, wall_clock=lambda: wall)
    assert (await source.issue()).token == jwt(1100)
    assert provider["grants"] == []
    wall = 1071.0
    issued = await source.issue()
    assert (issued.token, issued.lifetime) == (jwt(2000), 899.0)
    wall = 1990.0
    await source.issue()
    assert [grant for grant, _ in provider["grants"]] == ["r1", "r2"]
    assert provider["grants"][0][1].startswith("Basic ")


async def test_an_openid_provider_with_an_unknown_certificate_gets_no_secret(tmp_path, provider):
    source = OidcToken(Entry("user", tmp_path, {}), oidc(provider, None))
    with pytest.raises(CredentialsError, match=r"refresh at .* failed: ClientConnectorCertificateError") as caught:
        await source.issue()
    assert provider["grants"] == []
    assert "topsecret" not in str(caught.value)


@pytest.mark.parametrize("token", ["topsecret", "a.b.c", "a.e30=.c", "a.W10.c", "a.eyJleHAiOltdfQ.c"])
async def test_an_openid_token_that_is_no_json_web_token_is_refused(tmp_path, token):
    source = OidcToken(Entry("user", tmp_path, {}), {"id-token": token}, wall_clock=lambda: 0.0)
    if token == "a.e30=.c":
        assert (await source.issue()).lifetime == float("inf")
        return
    with pytest.raises(CredentialsError, match="not a JSON web token"):
        await source.issue()


# Certificates over time.


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


# Proxies.


@pytest.mark.parametrize(
    ("server", "environment", "proxy"),
    [
        ("https://api:6443", {"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
        ("https://api", {"https_proxy": "p:1"}, "http://p:1"),
        ("https://api", {"HTTP_PROXY": "http://p:1"}, None),
        ("https://127.0.0.1:1", {"HTTPS_PROXY": "http://p:1"}, None),
        ("https://[::1]:1", {"HTTPS_PROXY": "http://p:1"}, None),
        ("https://localhost", {"HTTPS_PROXY": "http://p:1"}, None),
        ("https://10.1.2.3", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "x, 10.0.0.0/8"}, None),
        ("https://11.1.2.3", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "x,10.0.0.0/8"}, "http://p:1"),
        ("https://a.corp", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "corp"}, None),
        ("https://corp", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": ".corp"}, "http://p:1"),
        ("https://a.corp", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*.corp"}, None),
        ("https://acorp", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "corp"}, "http://p:1"),
        ("https://a:1", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "a:2"}, "http://p:1"),
        ("https://a:2", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "a:2"}, None),
        ("https://a", {"HTTPS_PROXY": "http://p:1", "no_proxy": "*"}, None),
    ],
)
def test_the_proxy_of_the_environment_is_found_as_go_finds_it(server, environment, proxy):
    assert proxy_from_environment(server, environment) == proxy


def test_a_proxy_in_the_kubeconfig_wins_over_the_environment(tmp_path):
    path = kubeconfig(tmp_path, cluster={"server": "https://api", "proxy-url": "http://mine:1"})
    assert load_credentials(path, environment={"HTTPS_PROXY": "http://p:1"}).proxy == "http://mine:1"
