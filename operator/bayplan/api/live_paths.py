"""How the running scheduler is asked questions, and refuses one; who asks and who answers agree on it here."""

from http import HTTPStatus
from typing import Final

PREFIX: Final = "/bayplan/v1"
"""Not below `/api`: Kubernetes' role `system:discovery` lets every authenticated user get whatever begins so."""
SIMULATE: Final = f"{PREFIX}/simulate"
"""The one path that takes a body."""
ALL_THAT_FIT: Final = "max"
"""A count that is no number, here and in `bayplan simulate`."""


class RefusedQuestionError(Exception):
    """Raised for a question that has no answer; `status` is told, and after how many seconds to ask again."""

    def __init__(self, status: HTTPStatus, message: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after
