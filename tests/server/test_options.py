"""What the flags for serving come to, in the groups that the server is given."""

import ssl
from dataclasses import replace

import pytest
from click.testing import CliRunner

from bayplan.cli.flags import command
from bayplan.config.errors import ConfigurationError
from bayplan.server.options import AuthenticationOptions, AuthorizationOptions, ServingOptions, TlsPolicy


def options(*flags, **environment):
    made = []

    @command(examples=())
    def serve(serving: ServingOptions, who: AuthenticationOptions, what: AuthorizationOptions) -> None:
        made.append(replace(serving, authentication=who, authorization=what))

    runner = CliRunner(env={"KUBERNETES_SERVICE_HOST": None, **environment})
    ran = runner.invoke(serve, flags, catch_exceptions=False)
    assert ran.exit_code == 0, ran.output
    return made[0]


def errors_of(*flags):
    with pytest.raises(ConfigurationError) as raised:
        options(*flags)
    return [str(error) for error in raised.value.errors]


def test_without_flags_it_is_what_kube_scheduler_does_on_this_machine_only():
    found = options()
    assert (found.bind_address, found.secure_port, found.http_port) == ("127.0.0.1", 10259, None)
    assert (found.tls, found.shares_port, found.disabled_metrics) == (TlsPolicy(), False, frozenset())
    authentication, authorization = found.authentication, found.authorization
    assert (authentication.token_seconds, authentication.skips_lookup) == (10.0, False)
    assert authentication.tolerates_failed_lookup is True
    assert (authorization.allowed_seconds, authorization.denied_seconds) == (10.0, 10.0)
    assert authorization.always_allow_paths == ("/healthz", "/readyz", "/livez")


@pytest.mark.parametrize(
    ("environment", "address"),
    [
        ({}, "127.0.0.1"),
        ({"KUBERNETES_SERVICE_HOST": ""}, "127.0.0.1"),
        ({"KUBERNETES_SERVICE_HOST": "::1"}, ""),
    ],
)
def test_only_in_a_pod_it_listens_to_the_network_by_default(environment, address):
    assert options(**environment).bind_address == address


def test_port_0_serves_no_https():
    assert options("--secure-port=0").secure_port is None


@pytest.mark.parametrize(
    ("names", "policy"),
    [
        (["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"], TlsPolicy(ciphers="ECDHE-RSA-AES128-GCM-SHA256")),
        (
            ["TLS_AES_128_GCM_SHA256,TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", "TLS_RSA_WITH_AES_256_CBC_SHA"],
            TlsPolicy(ciphers="ECDHE-ECDSA-CHACHA20-POLY1305:AES256-SHA"),
        ),
        (["TLS_AES_128_GCM_SHA256"], TlsPolicy(ssl.TLSVersion.TLSv1_3)),
    ],
)
def test_cipher_suites_have_gos_names(names, policy):
    assert options(*(f"--tls-cipher-suites={each}" for each in names)).tls == policy


def test_every_flag_sets_its_option():
    found = options(
        "--bind-address=::1",
        "--secure-port=1",
        "--http-port=0",
        "--tls-min-version=VersionTLS13",
        "--permit-port-sharing=true",
        "--disabled-metrics=a,b",
        "--tls-cert-file=c",
        "--tls-private-key-file=k",
        "--client-ca-file=ca",
        "--authentication-token-webhook-cache-ttl=1m",
        "--authentication-skip-lookup=true",
        "--authentication-tolerate-lookup-failure=false",
        "--authorization-webhook-cache-authorized-ttl=1s",
        "--authorization-webhook-cache-unauthorized-ttl=0s",
        "--authorization-always-allow-paths=/healthz",
        "--authorization-always-allow-paths=/metrics*",
    )
    pem = (found.certificate, found.key, found.authentication.client_authorities)
    assert [each.name for each in pem] == ["--tls-cert-file c", "--tls-private-key-file k", "--client-ca-file ca"]
    assert (found.bind_address, found.secure_port, found.http_port, found.shares_port) == ("::1", 1, 0, True)
    assert found.tls.minimum_version is ssl.TLSVersion.TLSv1_3
    assert found.disabled_metrics == {"a", "b"}
    authentication, authorization = found.authentication, found.authorization
    assert (authentication.token_seconds, authentication.skips_lookup) == (60.0, True)
    assert authentication.tolerates_failed_lookup is False
    assert (authorization.allowed_seconds, authorization.denied_seconds) == (1.0, 0.0)
    assert authorization.always_allow_paths == ("/healthz", "/metrics*")


def test_all_that_is_wrong_is_told_together_with_its_flag():
    assert errors_of(
        "--bind-address=example.com",
        "--tls-min-version=VersionTLS10",
        "--permit-port-sharing=yes",
        "--tls-cert-file=a",
        "--authorization-webhook-cache-authorized-ttl=soon",
        "--authorization-always-allow-paths=/a*b",
    ) == [
        '--bind-address: Invalid value: "example.com": must be an IP address',
        '--tls-min-version: Unsupported value: "VersionTLS10": supported values: "VersionTLS12", "VersionTLS13"',
        '--permit-port-sharing: Invalid value: "yes": must be true or false',
        "--tls-private-key-file: Required value: --tls-cert-file is of no use without it",
        '--authorization-webhook-cache-authorized-ttl: Invalid value: "soon": must be a duration such as "10s"',
        '--authorization-always-allow-paths: Invalid value: "/a*b": may have * at its end only',
    ]


def test_paths_that_are_given_and_empty_let_nobody_ask():
    assert options("--authorization-always-allow-paths=").authorization.always_allow_paths == ()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("TLS_RSA_WITH_RC4_128_SHA", "is broken, and OpenSSL does not speak it"),
        ("ECDHE-RSA-AES128-SHA", "Unsupported value"),
    ],
)
def test_a_cipher_suite_that_cannot_be_spoken_is_refused(name, why):
    assert why in errors_of(f"--tls-cipher-suites={name}")[0]
