"""Flags of kube-scheduler that bayplan has otherwise, or not at all: whoever gives one is told why."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

_FRONT_PROXY = "no API server stands as a proxy before a scheduler, so nobody's name in a header is believed"
_SPLIT_LOG = "all lines go to standard error, and are written beside the work"
_LABELS = "no label of a metric holds what users make up, so there is nothing to hold back"
_VERSIONS = "bayplan behaves as one version of kube-scheduler, which docs/scope.md names"

REFUSED: Final = {
    "--tls-sni-cert-key": "one certificate is served; give it all the names, and name it with --tls-cert-file",
    "--tls-curve-preferences": "OpenSSL chooses among its own",
    "--requestheader-allowed-names": _FRONT_PROXY,
    "--requestheader-client-ca-file": _FRONT_PROXY,
    "--requestheader-extra-headers-prefix": _FRONT_PROXY,
    "--requestheader-group-headers": _FRONT_PROXY,
    "--requestheader-uid-headers": _FRONT_PROXY,
    "--requestheader-username-headers": _FRONT_PROXY,
    "--emulated-version": _VERSIONS,
    "--min-compatibility-version": _VERSIONS,
    "--allow-metric-labels": _LABELS,
    "--allow-metric-labels-manifest": _LABELS,
    "--log-json-info-buffer-size": _SPLIT_LOG,
    "--log-json-split-stream": _SPLIT_LOG,
    "--log-text-info-buffer-size": _SPLIT_LOG,
    "--log-text-split-stream": _SPLIT_LOG,
    "--vmodule": "what is logged is chosen by -v alone",
    "--version": "write it before the command: bayplan --version",
}
"""Why `bayplan run` does not take a flag of kube-scheduler."""

SWITCHES: Final = (
    "--leader-elect",
    "--profiling",
    "--contention-profiling",
    "--authentication-skip-lookup",
    "--authentication-tolerate-lookup-failure",
    "--permit-port-sharing",
    "--permit-address-sharing",
    "--disable-http2-serving",
)
"""Flags that mean true without a value, and take one after `=` only, as Go's do."""


PLACES: Final = (
    "--config",
    "--kubeconfig",
    "--master",
    "--write-config-to",
    "--cert-dir",
    "--tls-cert-file",
    "--tls-private-key-file",
    "--client-ca-file",
    "--authentication-kubeconfig",
    "--authorization-kubeconfig",
)
"""Flags that count as not given where they say nothing, as `--config=` does."""


def as_go_reads(arguments: Sequence[str]) -> list[str]:
    """Return `arguments` with the value that a switch alone stands for, `-v=2` as a level, and no empty places."""
    read: list[str] = []
    for each in arguments:
        if each == "" and read and read[-1] in PLACES:
            read.pop()
        elif each in SWITCHES:
            read.append(f"{each}=true")
        elif each.startswith("-v="):
            read.append(f"-{each}")
        elif not (each.endswith("=") and each[:-1] in PLACES):
            read.append(each)
    return read


def refusals(arguments: Sequence[str]) -> Iterator[str]:
    """Say of each argument that is kube-scheduler's alone, or a switch with its value apart, why it is not taken."""
    for argument, following in pairwise((*arguments, "")):
        switch = argument.removesuffix("=true")
        if switch in SWITCHES and following.lower() in {"true", "false"}:
            yield f"{switch}: takes its value after '=': use {switch}={following}"
        flag = argument.partition("=")[0]
        if flag in REFUSED:
            yield f"{flag}: is kube-scheduler's and not taken: {REFUSED[flag]}"
