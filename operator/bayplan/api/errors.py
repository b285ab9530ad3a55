"""What can go wrong between bayplan and an API server, by what the caller may do next."""


class CredentialsError(Exception):
    """Says which file, context or plugin keeps bayplan from logging in; never holds a secret."""


class UnreachableError(Exception):
    """The request was not sent: the server cannot have acted on it, so it is safe to try again."""


class AmbiguousError(Exception):
    """The request may have been sent and the answer is lost: the server may or may not have acted.

    Callers keep what they assumed until they have read the object.
    """
