"""What can go wrong between a person and a running scheduler; each text is one line that says what to do."""


class ClientError(Exception):
    """Raised for everything that a command prints as one line before it ends."""


class RefusedError(ClientError):
    """The scheduler answered something other than what was asked for; `status` is its HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class CannotLogInError(ClientError):
    """What says where to ask and how to log in is missing or wrong: the person's to mend, not the cluster's."""


class NotReachedError(ClientError):
    """There is no scheduler to ask: no Lease, no pod, nobody listens, or the API server does not lead to it."""
