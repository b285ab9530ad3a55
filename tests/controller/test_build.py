import logging

import aiohttp
import msgspec
import pytest
from tests.api.clients import POD
from tests.builders import make_pod
from tests.controller.kubernetes_api import KubernetesApi
from tests.faults.certificates import Authority

from bayplan.api.client import ApiClient
from bayplan.api.credentials import Credentials
from bayplan.api.kubeconfig import PemSource
from bayplan.config.load import default_configuration
from bayplan.controller.build import build
from bayplan.server.options import ServingOptions


async def test_a_password_in_the_servers_url_is_in_no_metric_and_no_log(caplog):
    caplog.set_level(logging.DEBUG)
    async with KubernetesApi() as server:
        parts = build(default_configuration(), Credentials(server=server.url.replace("//", "//me:topsecret@")))
        port = await parts.serving.server.start("127.0.0.1", 0)
        await parts.intake_list.client.request("GET", POD)
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/metrics") as answer:
            text = await answer.text()
        await parts.serving.stop()
        for client in parts.clients:
            await client.close()
    assert f'host="{server.url.removeprefix("http://")}"' in text
    assert "topsecret" not in text
    assert "topsecret" not in caplog.text


async def test_namespaces_that_admission_refuses_keep_no_missing_right_from_being_told(caplog):
    made = []

    def make_client(credentials, **options):
        made.append(options)
        return ApiClient(credentials, **options)

    parts = build(default_configuration(), Credentials(server="http://127.0.0.1:1"), make_client=make_client)
    for client in parts.clients:
        await client.close()
    for number in range(64):
        made[0]["on_refused"]("POST", f"/api/v1/namespaces/n{number}/pods/p/binding")
    made[0]["on_forbidden"]('no: User "u" cannot list resource "pods" in API group ""')
    assert [each.getMessage() for each in caplog.records if "permission missing, grant list" in each.getMessage()]


@pytest.mark.parametrize(("days", "lines"), [(1.0, 0), (-0.1, 1)])
async def test_a_serving_certificate_that_has_expired_is_shown_and_told_with_its_file(tmp_path, caplog, days, lines):
    certificate, key = Authority().issue("bayplan", ["127.0.0.1"], days=days)
    sources = []
    for flag, content in (("--tls-cert-file", certificate), ("--tls-private-key-file", key)):
        path = tmp_path / flag.removeprefix("--")
        path.write_bytes(content)
        sources.append(PemSource(flag, path=path))
    options = ServingOptions(certificate=sources[0], key=sources[1])
    parts = build(default_configuration(), Credentials(server="https://127.0.0.1:1"), serving=options)
    for client in parts.clients:
        await client.close()
    told = [each.getMessage() for each in caplog.records if "expired" in each.getMessage()]
    assert len(told) == lines
    named = f"serving with a certificate that has expired certificate=--tls-cert-file {tmp_path}/tls-cert-file expired="
    assert all(each.startswith(named) for each in told)


async def test_pods_that_wait_share_what_their_template_gives_them():
    parts = build(default_configuration(), Credentials(server="http://127.0.0.1:1"))
    pods = [make_pod(name, uid=name, cpu="1", labels={"app": "a"}, scheduler_name="bayplan") for name in ("p", "q")]
    for pod in pods:
        parts.intake_list.pending.changed(msgspec.json.decode(msgspec.json.encode(pod), type=type(pod)))
    first, second = (parts.scheduler.queue.newest(pod.metadata.uid).pod for pod in pods)
    for client in parts.clients:
        await client.close()
    assert second.spec.containers is first.spec.containers
    assert second.metadata.labels is first.metadata.labels
