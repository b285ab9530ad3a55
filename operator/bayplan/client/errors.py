"""What can go wrong between a person and a running scheduler; each text is one line that says what to do."""

from http import HTTPStatus

from bayplan.api.client import ApiClient
from bayplan.api.credentials import Credentials
from bayplan.api.errors import AmbiguousError, UnreachableError
from bayplan.api.live_paths import RefusedQuestionError
from bayplan.api.response import ApiResponse, decode_status


class ClientError(RefusedQuestionError):
    """Raised for everything that a command prints as one line before it ends, and a page is refused with."""

    def __init__(self, message: str) -> None:
        super().__init__(HTTPStatus.SERVICE_UNAVAILABLE, message)


class RefusedError(ClientError):
    """The scheduler answered something other than what was asked for; `status` is its HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = HTTPStatus(status)


class CannotLogInError(ClientError):
    """What says where to ask and how to log in is missing or wrong: the person's to mend, not the cluster's."""


class NotReachedError(ClientError):
    """There is no scheduler to ask: no Lease, no pod, nobody listens, or the API server does not lead to it."""


async def answer_to(api: ApiClient, method: str, path: str, body: bytes | None = None) -> ApiResponse:
    """Return the API server's answer, whatever its status; whoever looks for a scheduler asks by it.

    Raises:
        NotReachedError: there is none.
    """
    try:
        return await api.request(method, path, body=body)
    except (UnreachableError, AmbiguousError) as error:
        raise NotReachedError(f"the API server at {api.credentials.server} does not answer: {error}") from error


async def reached(credentials: Credentials) -> None:
    """Return once the API server answers: trouble of one is waited for later, but not one that was never there.

    Raises:
        NotReachedError: it does not.
    """
    api = ApiClient(credentials)
    try:
        await answer_to(api, "GET", "/version")
    finally:
        await api.close()


def unexpected(what: str, answer: ApiResponse) -> ClientError:
    """Return an error with the status, reason and message of an answer; `what` names the question."""
    reason, message = decode_status(answer.body)
    return ClientError(f"{what}: {answer.status} {reason}: {message}")
