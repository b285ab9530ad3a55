"""A service account's token the way a pod sees it: a projected volume that is replaced as a whole."""

import itertools
from pathlib import Path

from e2e.controlplane.client import ApiClient, path_of


def request_token(client: ApiClient, namespace: str, name: str, *, lifetime_seconds: int = 3600) -> str:
    """Returns a token of an existing service account from the TokenRequest API (600 seconds at least)."""
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": lifetime_seconds},
    }
    reply = client.request("POST", path_of("serviceaccounts", name, "token", namespace=namespace), request)
    token: str = reply["status"]["token"]
    return token


class ServiceAccountVolume:
    """The folder a kubelet projects into a pod: token, ca.crt and namespace, swapped by one rename.

    `directory` stands for /var/run/secrets/kubernetes.io/serviceaccount; `environment` holds the two
    variables that tell a pod where the API server is.
    """

    def __init__(
        self, directory: Path, client: ApiClient, *, namespace: str, name: str, ca_file: Path, port: int
    ) -> None:
        self.directory = directory
        self.environment = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(port)}
        self._client = client
        self._namespace, self._name = namespace, name
        self._ca_file = ca_file
        self._generation = itertools.count(1)
        directory.mkdir(parents=True, exist_ok=True)
        self.rotate()
        for entry in ("token", "ca.crt", "namespace"):
            (directory / entry).symlink_to(Path("..data") / entry)

    def rotate(self) -> str:
        """Puts a fresh token into the folder and returns it."""
        token = request_token(self._client, self._namespace, self._name)
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
