"""What the API server answers on the way to a scheduler, and the errors that people are told instead."""

from bayplan.api.client import ApiClient, ApiResponse, decode_status
from bayplan.api.errors import AmbiguousError, UnreachableError
from bayplan.client.errors import ClientError, NotReachedError


async def answer_to(api: ApiClient, method: str, path: str, body: bytes | None = None) -> ApiResponse:
    """Return the API server's answer, whatever its status; whoever looks for a scheduler asks by it.

    Raises:
        NotReachedError: there is none.
    """
    try:
        return await api.request(method, path, body=body)
    except (UnreachableError, AmbiguousError) as error:
        raise NotReachedError(str(error)) from error


def unexpected(what: str, answer: ApiResponse) -> ClientError:
    """Return the error that tells an answer as it is; `what` says of what it is."""
    reason, message = decode_status(answer.body)
    return ClientError(f"{what}: {answer.status} {reason}: {message}")
