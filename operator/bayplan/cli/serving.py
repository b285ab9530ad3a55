"""kube-scheduler's flags for serving: where, with which certificate, and to whom."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import click

from bayplan.cli.cluster_flags import FILE_NAME
from bayplan.cli.flag_groups import Flag


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingFlags:
    """The ports and their TLS; None or nothing for a flag that was not given."""

    section: ClassVar = "Secure serving options"

    bind_address: Annotated[
        str | None,
        Flag(
            "--bind-address",
            metavar="IP",
            help="Address of the secure port; by default all addresses in a pod, and 127.0.0.1 elsewhere.",
        ),
    ] = None
    secure_port: Annotated[
        int,
        Flag(
            "--secure-port",
            type=click.IntRange(0, 65535),
            metavar="PORT",
            help="Port of HTTPS, for clients that may; 0 serves none.",
        ),
    ] = 10259
    http_port: Annotated[
        int | None,
        Flag(
            "--http-port",
            type=click.IntRange(0, 65535),
            metavar="PORT",
            help="Also serve plain HTTP to everybody on this machine, at this port of 127.0.0.1; 0 picks a free one.",
        ),
    ] = None
    tls_cert_file: Annotated[
        Path | None,
        Flag(
            "--tls-cert-file",
            type=FILE_NAME,
            metavar="FILE",
            help="Serving certificate and what is between it and its CA.",
        ),
    ] = None
    tls_private_key_file: Annotated[
        Path | None, Flag("--tls-private-key-file", type=FILE_NAME, metavar="FILE", help="The key to it.")
    ] = None
    cert_dir: Annotated[
        Path | None,
        Flag(
            "--cert-dir",
            type=FILE_NAME,
            metavar="FOLDER",
            help="Where bayplan.crt and bayplan.key are, or are put; without it a new pair is made in memory.",
        ),
    ] = None
    tls_min_version: Annotated[
        str | None,
        Flag("--tls-min-version", metavar="VERSION", help="VersionTLS12, the default, or VersionTLS13."),
    ] = None
    tls_cipher_suites: Annotated[
        Sequence[str],
        Flag("--tls-cipher-suites", multiple=True, metavar="NAME,...", help="Cipher suites to accept, by Go's names."),
    ] = ()
    permit_port_sharing: Annotated[
        str | None,
        Flag("--permit-port-sharing", metavar="BOOL", help="Let other processes listen at the port as well."),
    ] = None
    permit_address_sharing: Annotated[
        str | None,
        Flag("--permit-address-sharing", metavar="BOOL", help="Accepted: an address is always shared."),
    ] = None
    disable_http2_serving: Annotated[
        str | None,
        Flag("--disable-http2-serving", metavar="BOOL", help="Accepted: HTTP/1.1 is all that is served."),
    ] = None
    http2_max_streams: Annotated[
        int | None,
        Flag("--http2-max-streams-per-connection", type=int, metavar="INT", help="Accepted: there is no HTTP/2."),
    ] = None
    disabled_metrics: Annotated[
        Sequence[str],
        Flag("--disabled-metrics", multiple=True, metavar="NAME,...", help="Metrics that are not served."),
    ] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticationFlags:
    """Who clients are; None for a flag that was not given."""

    section: ClassVar = "Authentication options"

    authentication_kubeconfig: Annotated[
        Path | None,
        Flag(
            "--authentication-kubeconfig",
            type=FILE_NAME,
            metavar="FILE",
            help="Whom to ask about tokens and client certificates; by default the cluster that is scheduled.",
        ),
    ] = None
    token_ttl: Annotated[
        str | None,
        Flag(
            "--authentication-token-webhook-cache-ttl",
            metavar="DURATION",
            help="How long an answer about a token holds; 10s by default.",
        ),
    ] = None
    client_ca_file: Annotated[
        Path | None,
        Flag(
            "--client-ca-file",
            type=FILE_NAME,
            metavar="FILE",
            help="Whose client certificates count; by default the cluster's, which are looked up.",
        ),
    ] = None
    skip_lookup: Annotated[
        str | None,
        Flag("--authentication-skip-lookup", metavar="BOOL", help="Look up no authorities in the cluster."),
    ] = None
    tolerate_lookup_failure: Annotated[
        str | None,
        Flag(
            "--authentication-tolerate-lookup-failure",
            metavar="BOOL",
            help="Start even if the authorities cannot be looked up; true by default.",
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationFlags:
    """What clients may; None or nothing for a flag that was not given."""

    section: ClassVar = "Authorization options"

    authorization_kubeconfig: Annotated[
        Path | None,
        Flag(
            "--authorization-kubeconfig",
            type=FILE_NAME,
            metavar="FILE",
            help="Whom to ask about rights; by default the cluster that is scheduled.",
        ),
    ] = None
    allowed_ttl: Annotated[
        str | None,
        Flag(
            "--authorization-webhook-cache-authorized-ttl",
            metavar="DURATION",
            help="How long a yes holds; 10s by default.",
        ),
    ] = None
    denied_ttl: Annotated[
        str | None,
        Flag(
            "--authorization-webhook-cache-unauthorized-ttl",
            metavar="DURATION",
            help="How long a no holds; 10s by default.",
        ),
    ] = None
    always_allow_paths: Annotated[
        Sequence[str],
        Flag(
            "--authorization-always-allow-paths",
            multiple=True,
            metavar="PATH,...",
            help="What everybody may ask for; /healthz,/readyz,/livez by default.",
        ),
    ] = ()
