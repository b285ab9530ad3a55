"""What the path of a request to the API server names."""

from dataclasses import dataclass


@dataclass
class Target:
    """What the path of a request names."""

    collection: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def target_of(path: str) -> Target:
    """Read the path of a request."""
    parts = path.strip("/").split("/")
    head, rest = (parts[:2], parts[2:]) if parts[0] == "api" else (parts[:3], parts[3:])
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    names = [*rest[1:], "", ""]
    return Target("/" + "/".join([*head, rest[0]]), namespace, names[0], names[1])
