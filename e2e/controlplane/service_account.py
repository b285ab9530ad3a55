"""A service account's token the way a pod sees it: a projected volume that is replaced as a whole."""

import itertools
from collections.abc import Mapping
from pathlib import Path

from e2e.controlplane.client import ApiClient, path_of

_LIFETIME_SECONDS = 3600


def request_token(client: ApiClient, namespace: str, name: str, **spec: object) -> str:
    """Returns a token of an existing service account; `spec` is what a TokenRequest may ask for."""
    path = path_of("serviceaccounts", name, "token", namespace=namespace)
    reply = client.request("POST", path, {"spec": {"expirationSeconds": _LIFETIME_SECONDS, **spec}})
    token: str = reply["status"]["token"]
    return token


class ServiceAccountVolume:
    """The folder a kubelet projects into a pod: token, ca.crt and namespace, swapped by one rename.

    `directory` stands for /var/run/secrets/kubernetes.io/serviceaccount; `environment` holds the two
    variables that tell a pod where the API server is. `spec` is what a TokenRequest may ask for.
    """

    def __init__(
        self,
        directory: Path,
        client: ApiClient,
        *,
        namespace: str,
        name: str,
        ca_file: Path,
        port: int,
        spec: Mapping[str, object],
    ) -> None:
        self.directory = directory
        self.environment = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(port)}
        self._client = client
        self._namespace, self._name, self._spec = namespace, name, spec
        self._ca_file = ca_file
        self._generation = itertools.count(1)
        directory.mkdir(parents=True, exist_ok=True)
        self.rotate()
        for entry in ("token", "ca.crt", "namespace"):
            (directory / entry).symlink_to(Path("..data") / entry)

    def rotate(self) -> str:
        """Puts a fresh token into the folder and returns it."""
        token = request_token(self._client, self._namespace, self._name, **self._spec)
        self.write(token)
        return token

    def write(self, token: str) -> None:
        """Puts any text in the token's place, as a kubelet would: all files change at one moment."""
        generation = f"..{next(self._generation)}"
        folder = self.directory / generation
        folder.mkdir()
        (folder / "token").write_text(token)
        (folder / "ca.crt").write_bytes(self._ca_file.read_bytes())
        (folder / "namespace").write_text(self._namespace)
        link = self.directory / "..data_new"
        link.symlink_to(generation)
        link.rename(self.directory / "..data")
