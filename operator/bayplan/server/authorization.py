"""What a client of the secure port may ask for (upstream: apiserver options/authorization.go)."""

from collections.abc import Sequence

import msgspec

from bayplan.server.reviews import ReviewCache, Reviews, User

PRIVILEGED_GROUP = "system:masters"
"""Who may do everything; API servers do not ask for it either."""


class Authorizer:
    """Says whether a user may ask for a path; the API server says so for `allowed_seconds` or `denied_seconds`.

    Access relies on it. `always_allow_paths` are open to everybody, a client without credentials included: whole paths,
    or with `*` at the end all that begin so. A leading `/` may be left out.
    """

    def __init__(
        self, reviews: Reviews, always_allow_paths: Sequence[str], *, allowed_seconds: float, denied_seconds: float
    ) -> None:
        self._reviews = reviews
        paths = [path if path.startswith(("/", "*")) else f"/{path}" for path in always_allow_paths]
        self._open = frozenset(path for path in paths if not path.endswith("*"))
        self._open_prefixes = tuple(path.removesuffix("*") for path in paths if path.endswith("*"))
        self._answers: ReviewCache[bool] = ReviewCache(
            lambda allowed: allowed_seconds if allowed else denied_seconds, lambda _: 0
        )

    def is_open(self, path: str) -> bool:
        """Whether everybody may ask for `path`, so that nobody has to be authenticated for it."""
        return path in self._open or path.startswith(self._open_prefixes)

    async def may(self, user: User, verb: str, path: str) -> bool:
        """Whether `user` may; raises ReviewError where the API server does not say."""
        if PRIVILEGED_GROUP in user.groups:
            return True
        try:
            key = msgspec.json.encode((user, verb, path))
        except UnicodeEncodeError:
            # No rule can name such a path.
            return False
        return await self._answers.get(key, lambda: self._reviews.may(user, verb, path))
