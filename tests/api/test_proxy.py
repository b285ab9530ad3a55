"""Which proxy a request goes through."""

import pytest
from tests.api.clients import POD, calling
from tests.api.credential_scene import kubeconfig
from tests.faults.api_server import FakeApiServer

from bayplan.api.credentials import Credentials, load_credentials
from bayplan.api.kubeconfig import proxy_from_environment


@pytest.mark.parametrize(
    ("server", "environment", "proxy"),
    [
        ("https://api:6443", {"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
        ("https://api", {"https_proxy": "p:1"}, "http://p:1"),
        ("https://api", {"HTTP_PROXY": "http://p:1"}, None),
        ("https://127.0.0.1:1", {"HTTPS_PROXY": "http://p:1"}, None),
        ("https://[::1]:1", {"HTTPS_PROXY": "http://p:1"}, None),
        ("https://localhost", {"HTTPS_PROXY": "http://p:1"}, None),
        ("https://10.1.2.3", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "x, 10.0.0.0/8"}, None),
        ("https://11.1.2.3", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "x,10.0.0.0/8"}, "http://p:1"),
        ("https://a.corp", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "corp"}, None),
        ("https://corp", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": ".corp"}, "http://p:1"),
        ("https://a.corp", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*.corp"}, None),
        ("https://acorp", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "corp"}, "http://p:1"),
        ("https://a:1", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "a:2"}, "http://p:1"),
        ("https://a:2", {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "a:2"}, None),
        ("https://a", {"HTTPS_PROXY": "http://p:1", "no_proxy": "*"}, None),
    ],
)
def test_the_proxy_of_the_environment_is_found_as_go_finds_it(server, environment, proxy):
    assert proxy_from_environment(server, environment) == proxy


def test_a_proxy_in_the_kubeconfig_wins_over_the_environment(tmp_path):
    path = kubeconfig(tmp_path, cluster={"server": "https://api", "proxy-url": "http://mine:1"})
    assert load_credentials(path, environment={"HTTPS_PROXY": "http://p:1"}).proxy == "http://mine:1"


async def test_a_proxy_gets_the_request():
    async with FakeApiServer() as proxy:
        async with calling(Credentials(server="http://api.invalid", proxy=proxy.url)) as client:
            assert (await client.request("GET", POD)).status == 404
        assert proxy.requests[0].headers["host"] == "api.invalid"
