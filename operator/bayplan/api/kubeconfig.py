"""kubeconfig files: found, merged as kubectl does, cut down to one context; and the URL and proxy of its server."""

import base64
import binascii
import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import yaml

from bayplan.api.errors import CredentialsError

_FIELDS: Final = frozenset({"kind", "preferences", "clusters", "contexts", "users", "current-context"})
"""Some of these every kubeconfig has that is not empty."""
_MOST_PIPED_BYTES: Final = 16 << 20


@dataclass(frozen=True, slots=True)
class PemSource:
    """PEM text given inline or as a file that may change; `label` names the field in messages."""

    label: str
    path: Path | None = None
    data: bytes = b""

    @property
    def name(self) -> str:
        """What messages call it: its label, with the file if it is one."""
        return self.label if self.path is None else f"{self.label} {self.path}"

    def read(self) -> bytes:
        """Return the PEM bytes as they are now.

        Raises:
            CredentialsError: the file cannot be read.
        """
        if self.path is None:
            return self.data
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise CredentialsError(f"{self.label}: cannot read {self.path}: {error.strerror}") from error

    def signature(self) -> tuple[int, int, int]:
        """Return what changes when the file is written or swapped; zeros for inline data or a missing file."""
        if self.path is None:
            return (0, 0, 0)
        try:
            status = self.path.stat()
        except OSError:
            return (0, 0, 0)
        return (status.st_mtime_ns, status.st_size, status.st_ino)


@dataclass(frozen=True, slots=True)
class Entry:
    """A named cluster, user or context, the file it came from, and where in it (for messages)."""

    where: str
    folder: Path
    fields: dict[str, Any]

    def text(self, key: str) -> str:
        """Return the string field `key`, or "" when absent; raises CredentialsError for another type."""
        value = self.fields.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise CredentialsError(f"{self.where}.{key}: expected a string")
        return value

    def path(self, key: str) -> Path | None:
        """Return the file named by `key`, relative names taken from the kubeconfig's own folder."""
        value = self.text(key)
        return self.folder / value if value else None

    def pem(self, key: str) -> PemSource | None:
        """Return the PEM of `key`-data (base64, wins) or of the file `key`, or None when neither is given."""
        inline = self.text(f"{key}-data")
        if inline:
            try:
                data = base64.b64decode(inline, validate=True)
            except (binascii.Error, ValueError) as error:
                raise CredentialsError(f"{self.where}.{key}-data: not base64") from error
            return PemSource(f"{self.where}.{key}-data", data=data)
        path = self.path(key)
        return PemSource(f"{self.where}.{key}", path=path) if path else None


def read_context(paths: Iterable[Path], context: str | None) -> tuple[Entry, Entry]:
    """Merge the kubeconfig files; return the cluster and the user (maybe an empty one) of `context`, or of the current.

    Like kubectl: the first file to set a name or the current context wins, and missing files of a list are
    skipped.

    Raises:
        CredentialsError: no file exists, one is malformed, or the context, cluster or user is missing.
    """
    wanted = list(paths)
    # A folder is there, and cannot be read, which is then said; a pipe is there, and can.
    present = [path for path in wanted if path.exists()]
    if not present:
        raise CredentialsError(f"kubeconfig not found: {', '.join(str(path) for path in wanted)}")
    documents = [(path, _read_document(path)) for path in present]
    clusters, users, contexts = (_merge(documents, kind) for kind in ("clusters", "users", "contexts"))
    name = context or next((str(found) for _, doc in documents if (found := doc.get("current-context"))), "")
    if not name:
        raise CredentialsError(f"{present[0]}: no current-context is set and none was asked for")
    files = ", ".join(str(path) for path in present)
    if name not in contexts:
        there = ", ".join(map(repr, [*contexts][:20])) or "none"
        raise CredentialsError(f"{files}: context {name!r} does not exist; there are: {there}")
    chosen = contexts[name]
    cluster_name, user_name = chosen.text("cluster"), chosen.text("user")
    if cluster_name not in clusters:
        raise CredentialsError(f"{files}: context {name!r} names cluster {cluster_name!r}, which does not exist")
    if user_name and user_name not in users:
        raise CredentialsError(f"{files}: context {name!r} names user {user_name!r}, which does not exist")
    return clusters[cluster_name], users.get(user_name, Entry("user", Path(), {}))


@cache
def _piped(path: Path) -> bytes:
    """What a pipe holds, which can be read only once; some commands ask twice."""
    with path.open("rb") as pipe:
        return pipe.read(_MOST_PIPED_BYTES)


def _read_document(path: Path) -> dict[str, Any]:
    try:
        document = yaml.safe_load(path.read_bytes() if path.is_file() else _piped(path))
    except OSError as error:
        raise CredentialsError(f"{path}: cannot be read: {error.strerror}") from error
    except yaml.MarkedYAMLError as error:
        # The parser's own text quotes the file, which holds secrets.
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        raise CredentialsError(f"{path}: not valid YAML near line {line}") from None
    except (yaml.YAMLError, ValueError, RecursionError):
        raise CredentialsError(f"{path}: not valid YAML") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise CredentialsError(f"{path}: not a kubeconfig: expected a mapping")
    if (document.get("kind") or "Config") != "Config" or (document and not document.keys() & _FIELDS):
        raise CredentialsError(f"{path}: not a kubeconfig: expected kind Config, with clusters, contexts and users")
    return document


def _merge(documents: list[tuple[Path, dict[str, Any]]], kind: str) -> dict[str, Entry]:
    merged: dict[str, Entry] = {}
    field = kind.removesuffix("s")
    for path, document in documents:
        items = document.get(kind) or []
        if not isinstance(items, list):
            raise CredentialsError(f"{path}: {kind}: expected a list")
        for index, item in enumerate(items):
            where = f"{path}: {kind}[{index}]"
            if not isinstance(item, dict) or not isinstance(item.get("name"), str):
                raise CredentialsError(f"{where}: expected a mapping with a name")
            fields = item.get(field) or {}
            if not isinstance(fields, dict):
                raise CredentialsError(f"{where}.{field}: expected a mapping")
            merged.setdefault(item["name"], Entry(f"{where}.{field}", path.parent.absolute(), fields))
    return merged


def proxy_from_environment(server: str, environment: Mapping[str, str]) -> str | None:
    """Return the proxy for `server` as Go's net/http finds it, or None; `Credentials` relies on it.

    HTTPS_PROXY or HTTP_PROXY by the server's scheme, upper case first, unless NO_PROXY names the server.
    Loopback addresses are never proxied.
    """
    parts = urlsplit(server)
    host = (parts.hostname or "").lower()
    if is_local(host):
        return None
    variable = f"{parts.scheme}_proxy"
    proxy = environment.get(variable.upper()) or environment.get(variable)
    if not proxy:
        return None
    exceptions = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    if any(_excludes(rule.strip().lower(), host, parts.port) for rule in exceptions.split(",")):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def is_address(host: str) -> bool:
    """Whether `host` is an IP address, and no name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_local(host: str) -> bool:
    """Whether a host or an address is this machine's own."""
    return host == "localhost" or (is_address(host) and ipaddress.ip_address(host).is_loopback)


def _excludes(rule: str, host: str, port: int | None) -> bool:
    if not rule:
        return False
    if rule == "*":
        return True
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(rule, strict=False)
    except ValueError:
        pass
    name, colon, rule_port = rule.rpartition(":")
    if colon and rule_port.isdigit():
        if port is not None and rule_port != str(port):
            return False
        rule = name
    suffix = rule.removeprefix("*").removeprefix(".")
    if rule.startswith((".", "*")):
        return host.endswith(f".{suffix}")
    return host == suffix or host.endswith(f".{suffix}")


_USERINFO: Final = re.compile(r"\A([^/?#]*//)[^/?#]*@")


def checked_url(url: str, label: str) -> str:
    """Return `url` if it is one of http or https with a host.

    Raises:
        CredentialsError: it is not; names `label` and does not quote the URL, which may hold a password.
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 0) >= 0
    except ValueError:
        usable = False
    if not usable or any(character <= " " for character in url):
        raise CredentialsError(f"{label}: expected a URL with http or https")
    return url


def without_userinfo(url: str) -> str:
    """Return `url` without the user and the password before its host, fit for logs, labels and messages.

    All else stays as it was written, also in what is no URL: a configuration that was printed reads back equal.
    """
    return _USERINFO.sub(r"\1", url)
