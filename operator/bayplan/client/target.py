"""What a person says of the scheduler that is meant."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

LEASE: Final = "bayplan"
"""The Lease of the manifests."""
ACCOUNT: Final = "bayplan"
"""The ServiceAccount of the manifests that the scheduler's pods run under."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Which scheduler is asked, and by whom, as options say it.

    Without `server` it is the pod that holds the Lease, by a port-forward. The token is that of `token_file`, or the
    kubeconfig's own with `own_token`, or one of the ServiceAccount `bayplan-reader`.
    """

    kubeconfig: Path | None = None
    context: str | None = None
    namespace: str | None = None
    """Where the scheduler runs; None looks where the manifests put it."""
    lease: str = LEASE
    service_account: str = ACCOUNT
    """The account of the scheduler's pods: no other pod is asked."""
    server: str | None = None
    authority: Path | None = None
    """Who signed the certificate at `server`; None leaves that to the system's authorities."""
    insecure: bool = False
    token_file: Path | None = None
    own_token: bool = False
