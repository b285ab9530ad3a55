import ssl
from pathlib import Path

import pytest

from bayplan.cli.serving import AuthenticationFlags, AuthorizationFlags, ServingFlags
from bayplan.cli.serving_options import serving_options
from bayplan.config.errors import ConfigurationError
from bayplan.server.options import ServingOptions
from bayplan.server.serving_tls import TlsPolicy


def options(serving=None, authentication=None, authorization=None, environment=None):
    return serving_options(
        serving or ServingFlags(),
        authentication or AuthenticationFlags(),
        authorization or AuthorizationFlags(),
        environment or {},
    )


def errors_of(**flags):
    with pytest.raises(ConfigurationError) as raised:
        options(**flags)
    return [str(error) for error in raised.value.errors]


def test_without_flags_it_is_what_kube_scheduler_does_on_this_machine_only():
    assert options() == ServingOptions()


@pytest.mark.parametrize(
    ("environment", "address"),
    [
        ({}, "127.0.0.1"),
        ({"KUBERNETES_SERVICE_HOST": ""}, "127.0.0.1"),
        ({"KUBERNETES_SERVICE_HOST": "::1"}, ""),
    ],
)
def test_only_in_a_pod_it_listens_to_the_network_by_default(environment, address):
    assert options(environment=environment).bind_address == address


def test_port_0_serves_no_https():
    assert options(ServingFlags(secure_port=0)).secure_port is None


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
    assert options(ServingFlags(tls_cipher_suites=names)).tls == policy


def test_every_flag_sets_its_option():
    found = options(
        ServingFlags(
            bind_address="::1",
            secure_port=1,
            http_port=0,
            tls_min_version="VersionTLS13",
            permit_port_sharing="true",
            disabled_metrics=["a,b"],
        ),
        AuthenticationFlags(token_ttl="1m", skip_lookup="true", tolerate_lookup_failure="false"),
        AuthorizationFlags(allowed_ttl="1s", denied_ttl="0s", always_allow_paths=["/healthz", "/metrics*"]),
    )
    assert (found.bind_address, found.secure_port, found.http_port, found.shares_port) == ("::1", 1, 0, True)
    assert found.tls.minimum_version is ssl.TLSVersion.TLSv1_3
    assert found.disabled_metrics == {"a", "b"}
    authentication, authorization = found.authentication, found.authorization
    assert (authentication.token_seconds, authentication.skips_lookup) == (60.0, True)
    assert authentication.tolerates_failed_lookup is False
    assert (authorization.allowed_seconds, authorization.denied_seconds) == (1.0, 0.0)
    assert authorization.always_allow_paths == ("/healthz", "/metrics*")


def test_all_that_is_wrong_is_told_together_with_its_flag():
    serving = ServingFlags(
        bind_address="example.com", tls_min_version="VersionTLS10", permit_port_sharing="yes", tls_cert_file=Path("a")
    )
    authorization = AuthorizationFlags(allowed_ttl="soon", always_allow_paths=["/a*b"])
    assert errors_of(serving=serving, authorization=authorization) == [
        '--bind-address: Invalid value: "example.com": must be an IP address',
        '--permit-port-sharing: Invalid value: "yes": must be true or false',
        '--tls-min-version: Unsupported value: "VersionTLS10": supported values: "VersionTLS12", "VersionTLS13"',
        '--authorization-always-allow-paths: Invalid value: "/a*b": may have * at its end only',
        '--authorization-webhook-cache-authorized-ttl: Invalid value: "soon": must be a duration such as "10s"',
        "--tls-private-key-file: Required value: --tls-cert-file is of no use without it",
    ]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("TLS_RSA_WITH_RC4_128_SHA", "is broken, and OpenSSL does not speak it"),
        ("ECDHE-RSA-AES128-SHA", "Unsupported value"),
    ],
)
def test_a_cipher_suite_that_cannot_be_spoken_is_refused(name, why):
    assert why in errors_of(serving=ServingFlags(tls_cipher_suites=[name]))[0]
