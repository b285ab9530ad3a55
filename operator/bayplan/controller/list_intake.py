"""Takes the pods of kopf's lists as they arrive, so that kopf has no event to make of each."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import aiohttp
import msgspec

from bayplan.api.pod_answer import read_pod
from bayplan.api.slices import in_slices
from bayplan.api.watch_event import UNREADABLE
from bayplan.api.watch_source import ListMeta
from bayplan.controller.intake import PendingPod
from bayplan.controller.stream_content import StreamContent


class _Page(msgspec.Struct, rename="camel", omit_defaults=True):
    """A page of a list of pods as far as kopf looks at it; `metadata` and `items` are still JSON."""

    metadata: msgspec.Raw
    items: list[msgspec.Raw] | None = None
    kind: str = ""
    api_version: str = ""


_page_decoder = msgspec.json.Decoder(_Page)
_meta_decoder = msgspec.json.Decoder(ListMeta)


class ListIntake:
    """An aiohttp client middleware that hands the pods of a list over and leaves kopf those that it cannot read.

    kopf makes an event of each listed pod, with a task or two: thirty times what it costs to read the pod here
    (docs/adr/0009). After a restart with a long queue that is most of the time to the first binding. kopf still decides
    when to list and where to watch on from, and hears of every pod that `deliver` was not told of.
    """

    def __init__(self, deliver: Callable[[PendingPod], None]) -> None:
        self._deliver = deliver
        self._news = asyncio.Event()
        self.complete = False
        """Whether all pods of a list were handed over."""

    async def __call__(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        """Send the request; of a list of pods what comes back is what is left for kopf."""
        response = await handler(request)
        url = request.url
        if response.status == 200 and url.path.endswith("/api/v1/pods") and url.query.get("watch") != "true":
            response.content = cast("aiohttp.StreamReader", _Rest(response.content, self._take))
        return response

    async def first_list(self, patience_seconds: float) -> None:
        """Wait for a complete list, as long as there was a page in the last `patience_seconds`."""
        while not self.complete:
            self._news.clear()
            try:
                async with asyncio.timeout(patience_seconds):
                    await self._news.wait()
            except TimeoutError:
                return

    async def _take(self, body: bytes) -> bytes:
        """Hand over the pods of a page; what is no page of pods stays as it is."""
        try:
            page = _page_decoder.decode(body)
            more = bool(_meta_decoder.decode(page.metadata).continue_)
        except UNREADABLE:
            return body
        rest: list[msgspec.Raw] = []

        def take(raw: msgspec.Raw) -> None:
            pod = read_pod(raw)
            if pod is None:
                rest.append(raw)
                return
            meta = pod.metadata
            self._deliver(PendingPod(meta.uid, f"{meta.namespace}/{meta.name}", pod))

        await in_slices(page.items or (), take)
        self.complete = self.complete or not more
        self._news.set()
        page.items = rest
        return msgspec.json.encode(page)


class _Rest(StreamContent):
    """A body of which a part is taken out when it is read as a whole."""

    def __init__(self, content: aiohttp.StreamReader, take: Callable[[bytes], Any]) -> None:
        super().__init__(content)
        self._take = take

    async def read(self) -> bytes:
        """Return what is left of the body."""
        return cast("bytes", await self._take(await self._content.read()))
