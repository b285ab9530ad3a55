"""Who gets to see the page of `bayplan web`."""

from urllib.parse import urlsplit

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer, unused_port

from bayplan.web.serve import Guard


class Site:
    """A guarded server with the page, something of a cluster, and one question that takes a body."""

    def __init__(self):
        self.port = unused_port()
        self.guard = Guard(self.port)
        self.shown = {}
        app = web.Application()
        self.guard.install(app)
        app.router.add_get("/", self.page)
        app.router.add_get("/told", self.told)
        app.router.add_post("/asked", self.told)
        self.client = TestClient(TestServer(app, host="127.0.0.1", port=self.port))

    async def page(self, _):
        return web.Response(text="the page")

    async def told(self, _):
        return web.Response(text="the cluster")

    @property
    def token(self):
        return self.guard.address.partition("?token=")[2]

    async def open(self, token=None, **headers):
        """What the page does with the token; from then on requests have what it got for it."""
        given = self.token if token is None else token
        own = {"Origin": f"http://127.0.0.1:{self.port}"}
        async with self.client.post("/open", data=given, headers=own | headers) as response:
            if response.status == 200:
                self.shown = {"Authorization": f"Bearer {await response.text()}"}
            return response

    async def get(self, path="/told", **headers):
        async with self.client.get(path, headers=self.shown | headers) as response:
            return response.status, await response.text()


@pytest.fixture
async def site():
    made = Site()
    async with made.client:
        yield made


async def test_the_printed_address_lets_a_browser_in_once(site):
    assert (await site.get())[0] == 401
    token = site.token
    assert (await site.open()).status == 200
    assert await site.get() == (200, "the cluster")
    site.shown = {}
    assert (await site.open(token)).status == 403
    assert (await site.get())[0] == 401


async def test_a_token_that_was_used_is_printed_no_more_and_an_empty_one_opens_nothing(site):
    await site.open()
    assert site.token == ""
    assert (await site.open("")).status == 403


async def test_a_wrong_token_does_not_use_up_the_right_one(site):
    assert (await site.open("\N{WAVING HAND SIGN}")).status == 403
    assert (await site.open()).status == 200


async def test_no_look_at_the_address_uses_up_the_token(site):
    address = urlsplit(site.guard.address)
    assert (await site.get(f"{address.path}?{address.query}")) == (200, "the page")
    assert [(await site.client.request(method, "/open")).status for method in ("HEAD", "GET")] == [405, 405]
    assert (await site.open()).status == 200


async def test_the_page_itself_is_for_everybody_and_another_site_may_lead_to_it_but_not_use_it(site):
    other = {"Sec-Fetch-Site": "cross-site"}
    assert await site.get("/", **other, **{"Sec-Fetch-Mode": "navigate"}) == (200, "the page")
    assert (await site.get("/", **other, **{"Sec-Fetch-Mode": "no-cors"}))[0] == 403
    await site.open()
    assert (await site.get("/told", **other, **{"Sec-Fetch-Mode": "navigate"}))[0] == 403


async def test_no_cookie_is_set_for_servers_at_other_ports_would_get_it(site):
    opened = await site.open()
    assert (opened.status, opened.headers.getall("Set-Cookie", [])) == (200, [])


async def test_the_secret_that_is_kept_is_not_that_of_the_address(site):
    token = site.token
    await site.open()
    assert token not in site.shown["Authorization"]
    assert len(token) > 40


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "[::1]:{port}", ""]
)
async def test_a_name_that_leads_here_from_elsewhere_is_refused(site, host):
    await site.open()
    status, text = await site.get(Host=host.format(port=site.port))
    assert status == 403
    assert "the cluster" not in text


async def test_the_token_is_kept_from_a_name_that_leads_here_from_elsewhere(site):
    assert (await site.open(Host="evil.example")).status == 403
    assert (await site.open()).status == 200


async def test_localhost_is_a_name_of_this_machine(site):
    await site.open()
    assert await site.get(Host=f"localhost:{site.port}") == (200, "the cluster")


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
    assert (await site.client.post("/asked", headers=site.shown | headers)).status == 403


async def test_work_is_asked_for_only_by_who_says_where_it_comes_from(site):
    await site.open()
    assert (await site.client.post("/asked", headers=site.shown)).status == 403
    own = site.shown | {"Origin": f"http://127.0.0.1:{site.port}"}
    assert (await site.client.post("/asked", headers=own)).status == 200


@pytest.mark.parametrize("path", ["/", "/open", "/told", "/nothing"])
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
