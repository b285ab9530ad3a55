"""Reads the API server's audit log: who wrote what, in the order it was answered."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

_DECISION = "authorization.k8s.io/decision"
_CREDENTIAL = "authentication.kubernetes.io/credential-id"
POLICY_FILE = Path(__file__).with_name("audit-policy.yaml")


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """One answered request; `document` is the request's body where the policy keeps bodies, else empty.

    `forbidden` means that no role allows it: a 403 may also come from admission, as in a namespace that ends.
    `credential` tells two processes of one user apart that have tokens of their own. `received` and `answered` are
    seconds since the epoch, by the API server's clock.
    """

    user: str
    verb: str
    resource: str
    namespace: str
    name: str
    code: int
    uri: str
    forbidden: bool = False
    document: dict[str, Any] = field(default_factory=dict)
    credential: str = ""
    received: float = 0.0
    answered: float = 0.0

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class AuditTail:
    """Follows an audit log from where it ends now; each line is read once."""

    def __init__(self, path: Path) -> None:
        self.events: list[AuditEvent] = []
        """What was answered since, in that order."""
        self._path = path
        self._position = path.stat().st_size if path.exists() else 0

    def poll(self) -> list[AuditEvent]:
        """Takes in what came, and returns all events so far."""
        if self._path.exists():
            with self._path.open("rb") as file:
                file.seek(self._position)
                content = file.read()
            complete = content.rfind(b"\n") + 1  # the last line may still be being written
            self._position += complete
            self.events += _read(content[:complete])
        return self.events


def read_audit_log(path: Path) -> list[AuditEvent]:
    """Returns all complete events; `resource` has the subresource after a slash (`pods/binding`)."""
    if not path.exists():
        return []
    content = path.read_bytes()
    return list(_read(content[: content.rfind(b"\n") + 1]))


def _read(content: bytes) -> Iterator[AuditEvent]:
    for line in content.splitlines():
        entry = json.loads(line)
        if entry["stage"] != "ResponseComplete":
            continue
        target = entry.get("objectRef", {})
        parts = [target.get("resource", ""), target.get("subresource", "")]
        yield AuditEvent(
            user=entry["user"]["username"],
            verb=entry["verb"],
            resource="/".join(part for part in parts if part),
            namespace=target.get("namespace", ""),
            name=target.get("name", ""),
            code=entry.get("responseStatus", {}).get("code", 0),
            uri=entry["requestURI"],
            forbidden=entry.get("annotations", {}).get(_DECISION) == "forbid",
            document=entry.get("requestObject") or {},
            credential=(entry["user"].get("extra", {}).get(_CREDENTIAL) or [""])[0],
            received=_seconds(entry["requestReceivedTimestamp"]),
            answered=_seconds(entry["stageTimestamp"]),
        )


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()
