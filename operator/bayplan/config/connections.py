"""How servers are reached that a configuration names: the API server, and extenders with their TLS settings."""

import re
import ssl
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Final

from bayplan.api.errors import CredentialsError
from bayplan.api.kubeconfig import without_userinfo
from bayplan.api.trust import client_context, load_identity
from bayplan.config.document import UnreadableFileError, read_file
from bayplan.config.errors import ConfigurationError, FieldError, child, invalid, item, required
from bayplan.config.fields import Fields, format_duration, required_name
from bayplan.config.labels import EXTENDED_RESOURCE
from bayplan.config.settings import Int64, Rule, broken_rules, within

_JITTER_FACTOR = 1.2
"""Up to which pauses between two tries may be longer than the retry period."""

SHIPPED_NAMESPACES: Final = ("bayplan-system", "kube-system")
"""Where the manifests install a scheduler with its lease; who may not look everywhere looks there."""

_MAX_BYTES: Final = 1024 * 1024
"""Largest file of certificates or of a key, in bytes."""

_TLS: Final = "tlsConfig"

_QUERY: Final = re.compile(r"\?.*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ExtenderTLSConfig:
    """How to reach an extender over TLS. Key material never shows in `repr`."""

    insecure: bool = False
    """Whether the server's certificate goes unchecked."""
    server_name: str = ""
    """The name the server's certificate must have, when it is not the host's."""
    cert_file: str = ""
    """Client certificate, a path."""
    key_file: str = ""
    """Client key, a path."""
    ca_file: str = ""
    """Trusted roots, a path."""
    cert_data: bytes = field(default=b"", repr=False)
    """Client certificate, PEM; before `cert_file`."""
    key_data: bytes = field(default=b"", repr=False)
    """Client key, PEM; before `key_file`."""
    ca_data: bytes = field(default=b"", repr=False)
    """Trusted roots, PEM; before `ca_file`."""


@dataclass(frozen=True, slots=True)
class ExtenderManagedResource:
    """An extended resource an extender looks after."""

    name: Annotated[str, EXTENDED_RESOURCE]
    """Its name."""
    ignored_by_scheduler: bool = False
    """Whether NodeResourcesFit leaves it to the extender."""


@dataclass(frozen=True, slots=True)
class Extender:
    """An HTTP service that takes part in scheduling."""

    url_prefix: str = ""
    """Where it listens; verbs are appended after a `/`."""
    filter_verb: str = ""
    """Empty when it does not filter."""
    preempt_verb: str = ""
    """Empty when it does not take part in preemption."""
    prioritize_verb: str = ""
    """Empty when it does not score."""
    weight: Int64 = 0
    """What its scores are multiplied by; positive when it scores."""
    bind_verb: str = ""
    """Empty when it does not bind; one extender at most."""
    enable_https: bool = False
    """Whether it is reached over TLS."""
    tls_config: ExtenderTLSConfig | None = None
    """How, when it is."""
    http_timeout: timedelta = timedelta()
    """How long a call may take; 0 means 5 s."""
    node_cache_capable: bool = False
    """Whether node names are enough for it."""
    managed_resources: tuple[ExtenderManagedResource, ...] = ()
    """It is called only for pods that name one of these; none means for all."""
    ignorable: bool = False
    """Whether pods are scheduled without it when it fails."""

    @property
    def shown_url(self) -> str:
        """Its `url_prefix` as logs, messages and Events may show it: without user, password and query."""
        return _QUERY.sub("?REDACTED", without_userinfo(self.url_prefix))


def _positive(duration: timedelta, path: str, _owner: object) -> list[FieldError]:
    zero = timedelta()
    return [] if duration > zero else [invalid(path, format_duration(duration), "must be greater than zero")]


def _leases(lock: str, path: str, _owner: object) -> list[FieldError]:
    return [] if lock == "leases" else [invalid(path, lock, 'resourceLock value must be "leases"')]


# Nothing is checked where nobody is elected, so what the schema says of these depends on `leaderElect`.
_POSITIVE, _LEASES = Rule(check=_positive), Rule(check=_leases)
_GIVEN: Final = Rule(check=lambda name, path, _owner: [] if name else [required(path)])


@dataclass(frozen=True, slots=True)
class LeaderElection:
    """Which replica is at work."""

    leader_elect: bool | None = None
    """Whether it contends for the lease; None, when nothing is said, means always in a pod, and elsewhere if it may."""
    lease_duration: Annotated[timedelta, _POSITIVE] = timedelta(seconds=15)
    """How long others wait after the last renewal before they take over."""
    renew_deadline: Annotated[timedelta, _POSITIVE] = timedelta(seconds=10)
    """How long after its last renewal the leader writes, and tries to renew, before it ends."""
    retry_period: Annotated[timedelta, _POSITIVE] = timedelta(seconds=2)
    """Time between renewals, and between the leader's tries; others look five times as often."""
    resource_lock: Annotated[str, _LEASES] = "leases"
    """Always `leases`."""
    resource_name: Annotated[str, _GIVEN] = "bayplan"
    """Name of the lease; kube-scheduler's default is its own lease, `kube-scheduler`."""
    resource_namespace: Annotated[str, _GIVEN] = "kube-system"
    """Namespace of the lease."""


@dataclass(frozen=True, slots=True)
class ClientConnection:
    """How the API server is reached."""

    kubeconfig: str = ""
    """Path of a kubeconfig file; empty looks elsewhere."""
    accept_content_types: str = ""
    """Kept for the round trip; bayplan speaks JSON."""
    content_type: str = "application/vnd.kubernetes.protobuf"
    """Kept for the round trip; bayplan speaks JSON."""
    qps: float = 50.0
    """Requests a second in the long run; negative is no limit."""
    burst: Annotated[int, within(0, None, "must be non-negative")] = 100
    """Requests that may be ahead of `qps`."""


def decode_extender(fields: Fields) -> Extender:
    """One extender, as it stands."""
    return fields.build(
        Extender,
        tls_config=fields.optional("tlsConfig", lambda block: block.build(ExtenderTLSConfig)),
        managed_resources=fields.objects(
            "managedResources", lambda each: each.build(ExtenderManagedResource, name=required_name(each))
        ),
    )


def validate_extenders(extenders: tuple[Extender, ...]) -> list[FieldError]:
    """Scoring needs a weight, one extender binds, and a resource is managed once."""
    errors = []
    managed = set()
    for index, extender in enumerate(extenders):
        path = item("extenders", index)
        if extender.prioritize_verb and extender.weight <= 0:
            errors.append(invalid(child(path, "weight"), extender.weight, "must have a positive weight applied to it"))
        for position, resource in enumerate(extender.managed_resources):
            name_path = child(item(child(path, "managedResources"), position), "name")
            if resource.name in managed:
                errors.append(invalid(name_path, resource.name, "duplicate extender managed resource name"))
            managed.add(resource.name)
    binders = sum(bool(extender.bind_verb) for extender in extenders)
    if binders > 1:
        found = f"found {binders} extenders implementing bind"
        errors.append(invalid("extenders", found, "only one extender can implement bind"))
    return errors


def decode_leader_election(fields: Fields, **given: Any) -> LeaderElection:  # noqa: ANN401 - values of any field
    """Which replica is at work, checked unless election is switched off; a duration of 0 means the default.

    Attributes that are `given` were read before.
    """
    election = fields.build(LeaderElection, zero_counts=False, checked=False, **given)
    fields.errors += _election_errors(election)
    return election


def _election_errors(election: LeaderElection) -> list[FieldError]:
    """What is wrong with an election, unless it is switched off: only an explicit `false` does that."""
    if election.leader_elect is False:
        return []
    errors = list(broken_rules(election, "leaderElection"))
    if election.lease_duration <= election.renew_deadline:
        # kube-scheduler shows the deadline in place of the value, which nobody may have written.
        shown, deadline = format_duration(election.lease_duration), format_duration(election.renew_deadline)
        errors.append(
            invalid("leaderElection.leaseDuration", shown, f"must be greater than `RenewDeadline` ({deadline})")
        )
    return errors


def elector_errors(election: LeaderElection) -> list[FieldError]:
    """Why no elector can work with durations that are right by themselves; kube-scheduler finds out when it starts.

    The first rule is client-go's (leaderelection.go NewLeaderElector). The second is ours: a Lease has whole seconds,
    and the last one that is written must not end before its holder stops.
    """
    errors = _election_errors(election)
    if errors or election.leader_elect is False:
        return errors
    deadline = format_duration(election.renew_deadline)
    if election.renew_deadline <= election.retry_period * _JITTER_FACTOR:
        detail = f"must be greater than retryPeriod * {_JITTER_FACTOR}"
        return [invalid("leaderElection.renewDeadline", deadline, detail)]
    if timedelta(seconds=election.lease_duration // timedelta(seconds=1)) <= election.renew_deadline:
        detail = f"must be greater than renewDeadline ({deadline}) in whole seconds"
        return [invalid("leaderElection.leaseDuration", format_duration(election.lease_duration), detail)]
    return []


def extender_tls_errors(extenders: tuple[Extender, ...]) -> list[FieldError]:
    """Say what keeps each `tlsConfig` from being used, after reading the files that it names."""
    errors: list[FieldError] = []
    for index, extender in enumerate(extenders):
        if extender.tls_config is not None:
            try:
                tls_context(extender)
            except ConfigurationError as error:
                path = item("extenders", index)
                errors += [FieldError(f"{path}.{each.path}", each.message) for each in error.errors]
    return errors


def tls_context(extender: Extender) -> ssl.SSLContext:
    """Return how to reach the extender over TLS, with the certificates and the name that its `tlsConfig` has.

    Raises:
        ConfigurationError: with all that is wrong, each at `tlsConfig` or a field of it; key material never shows.
    """
    tls = extender.tls_config or ExtenderTLSConfig()
    errors: list[FieldError] = []
    roots = _pem(tls, "ca", errors)
    certificate, key = _pem(tls, "cert", errors), _pem(tls, "key", errors)
    trusts = bool(tls.ca_data or tls.ca_file)
    if trusts and tls.insecure:
        message = "specifying a root certificates file with the insecure flag is not allowed"
        errors.append(FieldError(_TLS, message))
    if bool(tls.cert_data or tls.cert_file) != bool(tls.key_data or tls.key_file):
        errors.append(FieldError(_TLS, "certificate and key: one is given without the other"))
    # kube-scheduler does not check certificates when enableHTTPS is set and no CA is given.
    insecure = tls.insecure or (extender.enable_https and not trusts)
    try:
        context = client_context(roots, _TLS, server_name=tls.server_name, insecure=insecure)
    except CredentialsError:
        context = client_context(None, _TLS)
        errors.append(FieldError(_given(tls, "ca"), "holds no certificates in PEM"))
    if certificate is not None and key is not None:
        try:
            load_identity(context, certificate + b"\n" + key, _TLS)
        except CredentialsError:
            message = "certificate and key must be in PEM, without a password, and belong together"
            errors.append(FieldError(_TLS, message))
    if errors:
        raise ConfigurationError(errors)
    return context


def certificates_of(extenders: tuple[Extender, ...]) -> tuple[bytes | None, ...]:
    """Return what the files of certificates and keys hold, so that a reload sees whether one was rotated."""
    settings = [each.tls_config for each in extenders if each.tls_config is not None]
    return tuple(_pem(tls, name, []) for tls in settings for name in ("ca", "cert", "key"))


def _given(tls: ExtenderTLSConfig, name: str) -> str:
    """The path of the field that counts; data goes before a file."""
    return child(_TLS, f"{name}Data" if getattr(tls, f"{name}_data") else f"{name}File")


def _pem(tls: ExtenderTLSConfig, name: str, errors: list[FieldError]) -> bytes | None:
    """What is given as data or stands in the file; None without either, and when it cannot be read."""
    data: bytes = getattr(tls, f"{name}_data")
    file: str = getattr(tls, f"{name}_file")
    if data or not file:
        return data or None
    try:
        content = read_file(Path(file), _MAX_BYTES + 1, only_regular=True)
    except UnreadableFileError as error:
        errors.append(FieldError(_given(tls, name), str(error)))
        return None
    if 0 < len(content) <= _MAX_BYTES:
        return content
    errors.append(FieldError(_given(tls, name), f"is larger than {_MAX_BYTES} bytes" if content else "is empty"))
    return None
