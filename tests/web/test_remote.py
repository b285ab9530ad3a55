"""A scheduler that runs, as the page asks it."""

import asyncio
import json

import pytest

from bayplan.api.live_paths import RefusedQuestionError
from bayplan.client.errors import NotReachedError, RefusedError
from bayplan.web.sources import RemoteSource


class Client:
    """Notes what it was asked, and answers or raises as told."""

    url = "https://127.0.0.1:10259"

    def __init__(self, error=None):
        self.asked = []
        self.error = error

    def __getattr__(self, name):
        async def ask(*given, **named):
            self.asked.append((name, given, named))
            if self.error is not None:
                raise self.error
            return {"answer": name}

        return ask


async def test_each_question_is_passed_on_as_it_was_asked():
    client = Client()
    source = RemoteSource(client)
    answers = [
        await source.summary(),
        await source.nodes(),
        await source.node("n1"),
        await source.queue_page(0, 500),
        await source.queue_page(500, 500),
        await source.decisions(7, 100),
        await source.explanation("shop", "web"),
        await source.simulation(b"{}", "max"),
    ]
    assert [json.loads(each)["answer"] for each in answers] == [name for name, _, _ in client.asked]
    assert client.asked == [
        ("summary", (), {}),
        ("nodes", (), {}),
        ("node", ("n1",), {}),
        ("queue", (), {"limit": 500, "continue_": ""}),
        ("queue", (), {"limit": 500, "continue_": "500"}),
        ("decisions", (), {"after": 7, "limit": 100}),
        ("explanation", ("shop", "web"), {}),
        ("simulate", (b"{}",), {"count": "max"}),
    ]


@pytest.mark.parametrize(
    ("error", "status"),
    [(RefusedError(404, "there is no node x"), 404), (NotReachedError("it does not answer"), 503)],
)
async def test_what_the_scheduler_refuses_is_refused_with_its_words(error, status):
    with pytest.raises(RefusedQuestionError, match=str(error)) as refused:
        await RemoteSource(Client(error)).node("x")
    assert refused.value.status == status


class Following:
    """Counts how often it was told to ask again."""

    def __init__(self, enough):
        self.times = []
        self.enough = enough
        self.done = asyncio.Event()

    async def refresh(self, at, *, running):
        self.times.append((at, running))
        if len(self.times) == self.enough:
            self.done.set()


async def test_it_asks_again_and_again_until_it_is_cancelled():
    following = Following(3)
    source = RemoteSource(Client(), seconds_between=0)
    asking = asyncio.create_task(source.run(following))
    async with asyncio.timeout(10):
        await following.done.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert all(running for _, running in following.times)
    assert source.page["mode"] == "live"
