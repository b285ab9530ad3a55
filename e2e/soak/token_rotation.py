"""The token of the instances under test: short-lived, and replaced in its file as a kubelet does."""

import asyncio
from http.client import HTTPException
from pathlib import Path

from e2e.controlplane.client import ApiError
from e2e.controlplane.credentials import write_kubeconfig
from e2e.controlplane.installation import NAMESPACE, SERVICE_ACCOUNT
from e2e.controlplane.plane import ControlPlane

_LIFETIME_SECONDS = 600
"""The shortest that an API server grants: a soak of ten minutes ends with 401 if nobody reads the file again."""
_ROTATION_SECONDS = 120.0


class TokenRotation:
    """Puts a fresh token of the installed account into the file that `kubeconfig` names, every two minutes."""

    def __init__(self, plane: ControlPlane) -> None:
        self._volume = plane.in_cluster_dir(NAMESPACE, SERVICE_ACCOUNT, expirationSeconds=_LIFETIME_SECONDS)
        self.kubeconfig: Path = write_kubeconfig(
            plane.directory / "rotated.kubeconfig",
            url=plane.url,
            ca_file=plane.ca_file,
            user={"tokenFile": str(self._volume.directory / "token")},
        )

    async def run(self) -> None:
        """Goes on until it is cancelled; while the API server is away the old token stays until the next turn."""
        while True:
            await asyncio.sleep(_ROTATION_SECONDS)
            try:
                await asyncio.to_thread(self._volume.rotate)
            except (OSError, HTTPException, ApiError):
                continue
