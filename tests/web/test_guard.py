"""Who gets to see the page of `bayplan web`."""

from urllib.parse import urlsplit

import pytest
from aiohttp import CookieJar, web
from aiohttp.test_utils import TestClient, TestServer, unused_port

from bayplan.web.guard import Guard

KEPT_APART = {"Sec-Fetch-Site": "same-origin"}


class Site:
    """A guarded server with one page, and one question that takes a body."""

    def __init__(self):
        self.port = unused_port()
        self.guard = Guard(self.port)
        app = web.Application()
        self.guard.install(app)
        app.router.add_get("/", self.page)
        app.router.add_post("/", self.page)
        self.client = TestClient(TestServer(app, host="127.0.0.1", port=self.port), cookie_jar=CookieJar(unsafe=True))

    async def page(self, _):
        return web.Response(text="the page")

    async def open(self, **more):
        address = urlsplit(self.guard.address)
        return await self.client.get(f"{address.path}?{address.query}", allow_redirects=False, **more)

    async def get(self, path="/", **headers):
        async with self.client.get(path, headers=headers) as response:
            return response.status, await response.text()


@pytest.fixture
async def site():
    made = Site()
    async with made.client:
        yield made


async def test_the_printed_address_lets_a_browser_in_once(site):
    assert (await site.get())[0] == 401
    printed = site.guard.address
    opened = await site.open()
    assert (opened.status, opened.headers["Location"]) == (303, "/")
    assert await site.get() == (200, "the page")
    site.client.session.cookie_jar.clear()
    address = urlsplit(printed)
    assert (await site.get(f"{address.path}?{address.query}"))[0] == 403
    assert (await site.get())[0] == 401


async def test_a_token_that_was_used_is_printed_no_more_and_an_empty_one_opens_nothing(site):
    await site.open()
    site.client.session.cookie_jar.clear()
    assert (await site.get("/open?token="))[0] == 403
    assert (await site.get("/open"))[0] == 403
    assert site.guard.address.endswith("token=")


async def test_a_wrong_token_does_not_use_up_the_right_one(site):
    assert (await site.get("/open?token=%F0%9F%91%8B"))[0] == 403
    assert (await site.open()).status == 303


async def test_a_look_at_the_heads_does_not_use_up_the_token(site):
    address = urlsplit(site.guard.address)
    assert (await site.client.head(f"{address.path}?{address.query}", allow_redirects=False)).status == 405
    assert (await site.open()).status == 303


async def test_the_cookie_is_for_this_server_alone(site):
    cookie = (await site.open()).headers["Set-Cookie"]
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= {part.strip() for part in cookie.split(";")}
    assert cookie.startswith(f"bayplan-{site.port}=")
    assert site.guard.address not in cookie


async def test_the_secret_of_the_cookie_is_not_that_of_the_address(site):
    token = site.guard.address.partition("token=")[2]
    assert token not in (await site.open()).headers["Set-Cookie"]
    assert len(token) > 40


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "[::1]:{port}", ""]
)
async def test_a_name_that_leads_here_from_elsewhere_is_refused(site, host):
    await site.open()
    status, text = await site.get(Host=host.format(port=site.port))
    assert status == 403
    assert "the page" not in text


async def test_the_token_is_kept_from_a_name_that_leads_here_from_elsewhere(site):
    refused = await site.open(headers={"Host": "evil.example"})
    assert refused.status == 403
    assert (await site.open()).status == 303


async def test_localhost_is_a_name_of_this_machine(site):
    await site.open()
    name = f"localhost:{site.port}"
    # Cookies are the browser's matter: what is refused here is not the name.
    assert (await site.get(Host=name))[0] in {200, 401}


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
async def test_another_sites_page_may_not_ask(site, headers):
    await site.open()
    assert (await site.get(**headers))[0] == 403
    assert (await site.client.post("/", headers=headers)).status == 403


async def test_work_is_asked_for_only_by_who_says_where_it_comes_from(site):
    await site.open()
    assert (await site.client.post("/")).status == 403
    own = {"Origin": f"http://127.0.0.1:{site.port}"}
    assert (await site.client.post("/", headers=own)).status == 200


@pytest.mark.parametrize("path", ["/", "/open", "/nothing"])
async def test_every_answer_forbids_what_the_page_does_not_need(site, path):
    async with site.client.get(path) as response:
        headers = response.headers
    policy = dict(part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";"))
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "connect-src": "'self'",
        "img-src": "'self' data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-store"
