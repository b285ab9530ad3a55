"""Where the running scheduler answers questions; the server and its clients agree on it here."""

from typing import Final

PREFIX: Final = "/bayplan/v1"
"""Not below `/api`: Kubernetes' role `system:discovery` lets every authenticated user get whatever begins so."""
SIMULATE: Final = f"{PREFIX}/simulate"
"""The one path that takes a body."""
