"""How the running scheduler is asked questions; the server and its clients agree on it here."""

from typing import Final

PREFIX: Final = "/bayplan/v1"
"""Not below `/api`: Kubernetes' role `system:discovery` lets every authenticated user get whatever begins so."""
SIMULATE: Final = f"{PREFIX}/simulate"
"""The one path that takes a body."""
ALL_THAT_FIT: Final = "max"
"""A count that is no number, here and in `bayplan simulate`."""
