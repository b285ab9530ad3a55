"""The content of an aiohttp response, of which a part is read in another way."""

from typing import Any

import aiohttp


class StreamContent:
    """A response's content; in all that a subclass does not say, the stream itself. It stands in `response.content`."""

    def __init__(self, content: aiohttp.StreamReader) -> None:
        self._content = content

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  whatever the stream has
        return getattr(self._content, name)
