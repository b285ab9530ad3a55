"""How a person's question gets to the scheduler that is meant, and with whose token."""

import asyncio
import json

import pytest
from tests.client.fake_cluster import LEASE, POD, TOKEN

from bayplan.api.live_paths import RefusedQuestionError
from bayplan.client.connect import connect
from bayplan.client.errors import CannotLogInError, ClientError, NotReachedError, RefusedError
from bayplan.client.leader import Target


@pytest.fixture
def target(kubeconfig):
    return Target(kubeconfig=kubeconfig)


@pytest.fixture
def authority(scheduler, tmp_path):
    file = tmp_path / "ca.crt"
    file.write_bytes(scheduler.server_authority.pem)
    return file


async def failure(target):
    with pytest.raises(ClientError) as raised:
        async with connect(target) as client:
            await client.summary()
    assert "\n" not in str(raised.value)
    return raised.value


async def test_every_answer_comes_through_a_port_forward_to_the_holder_of_the_lease(target, cluster):
    async with connect(target) as client:
        assert json.loads(await client.summary())["leading"] is True
        assert json.loads(await client.nodes())["names"] == ["n1"]
        assert json.loads(await client.node("n1"))["allocatable"]["cpu"] == 4000
        assert [each["name"] for each in json.loads(await client.queue_page(0, 5))["items"]] == ["big"]
        assert json.loads(await client.queue_page(1, 5))["items"] == []
        assert [each["name"] for each in json.loads(await client.decisions(0, 5))["items"]] == ["big"]
        assert json.loads(await client.decisions(1, 5))["items"] == []
        assert json.loads(await client.explanation("default", "big"))["state"] == "pending"
        body = b'{"kind": "Pod", "metadata": {"name": "a"}, "spec": {"schedulerName": "bayplan", "containers": [{}]}}'
        assert json.loads(await client.simulation(body, ""))["pods"][0]["attempts"][0]["node"] == "n1"
        assert json.loads(await client.simulation(body, "max"))["count"]["fits"] > 0
    assert set(cluster.forwards) == {("bayplan-system", "bayplan-7f-x2", "10259")}


async def test_what_the_scheduler_refuses_is_refused_with_its_words(target, cluster):
    async with connect(target) as client:
        with pytest.raises(RefusedQuestionError, match="there is no pod default/nobody") as refused:
            await client.explanation("default", "nobody")
    assert refused.value.status == 404


async def test_the_scheduler_is_shown_a_token_of_the_reader_and_never_the_persons_own(target, cluster, scheduler):
    async with connect(target) as client:
        await client.summary()
        await client.summary()
    (wanted,) = cluster.tokens
    assert wanted["spec"] == {"expirationSeconds": 600}
    shown = {body for seen in scheduler.api.requests if "tokenreviews" in seen.path for body in [seen.body]}
    assert shown
    assert not any(b"admins-own" in body for body in shown)


async def test_the_persons_own_token_is_shown_only_when_that_is_asked_for(kubeconfig, cluster):
    error = await failure(Target(kubeconfig=kubeconfig, namespace="bayplan-system", own_token=True))
    assert (error.status, cluster.tokens) == (401, [])


async def test_a_pod_that_was_only_found_is_shown_no_token_that_a_person_gave(kubeconfig, cluster, tmp_path):
    file = tmp_path / "token"
    file.write_text("reader-token\n")
    for given in ({"own_token": True}, {"token_file": file}):
        error = await failure(Target(kubeconfig=kubeconfig, **given))
        assert isinstance(error, CannotLogInError)
        assert str(error).startswith("say by --scheduler-namespace whose pods may see the token")
    assert (cluster.asked, cluster.forwards) == ([], [])


async def test_a_token_of_a_file_is_shown_instead(kubeconfig, cluster, tmp_path):
    file = tmp_path / "token"
    file.write_text("reader-token\n")
    async with connect(Target(kubeconfig=kubeconfig, namespace="bayplan-system", token_file=file)) as client:
        assert json.loads(await client.summary())["nodes"] == 1
    assert cluster.tokens == []


async def test_without_a_lease_it_says_where_it_looked(target, cluster):
    cluster.answers.pop(LEASE.format("bayplan-system"))
    error = await failure(target)
    assert str(error).startswith("there is no Lease bayplan-system/bayplan or kube-system/bayplan")
    assert "--scheduler-namespace" in str(error)


async def test_the_lease_is_also_found_where_the_base_puts_it(target, cluster):
    cluster.answers.pop(LEASE.format("bayplan-system"))
    cluster.lease("other-pod_1", "kube-system")
    cluster.account("reader-token", "kube-system")
    async with connect(target) as client:
        await client.summary()
    assert set(cluster.forwards) == {("kube-system", "other-pod", "10259")}


async def test_of_several_leases_none_is_taken_unless_its_namespace_is_named(kubeconfig, cluster):
    cluster.lease("theirs_1", "kube-system")
    told = "there are Leases bayplan-system/bayplan and kube-system/bayplan: say which scheduler is meant by "
    assert (
        str(await failure(Target(kubeconfig=kubeconfig))) == f"{told}--scheduler-namespace, or delete the one left over"
    )
    assert cluster.forwards == []
    async with connect(Target(kubeconfig=kubeconfig, namespace="bayplan-system")) as client:
        await client.summary()
    assert set(cluster.forwards) == {("bayplan-system", "bayplan-7f-x2", "10259")}


async def test_who_may_read_the_lease_of_one_namespace_alone_needs_not_name_it(target, cluster):
    cluster.answers[LEASE.format("kube-system")] = (403, {"reason": "Forbidden", "message": "no"})
    async with connect(target) as client:
        assert json.loads(await client.summary())["nodes"] == 1


async def test_a_holder_under_another_account_is_not_asked_unless_that_is_named(kubeconfig, cluster):
    cluster.lease("theirs_1", account="default")
    assert str(await failure(Target(kubeconfig=kubeconfig))) == (
        "pod bayplan-system/theirs holds Lease bayplan-system/bayplan but runs under ServiceAccount 'default', not "
        "'bayplan', and is not asked; --scheduler-service-account names another"
    )
    assert (cluster.forwards, cluster.tokens) == ([], [])
    async with connect(Target(kubeconfig=kubeconfig, service_account="default")) as client:
        await client.summary()


async def test_a_holder_that_is_no_pod_is_said(target, cluster):
    cluster.answers.pop(POD.format("bayplan-system", "bayplan-7f-x2"))
    error = await failure(target)
    assert isinstance(error, NotReachedError)
    told = "holds Lease bayplan-system/bayplan and is no pod there, as where `bayplan run` was started by hand: "
    assert told in str(error)
    assert str(error).startswith("'bayplan-7f-x2_")
    assert cluster.forwards == []


LONG_AGO = {"renewTime": "2020-01-01T00:00:00.000000Z", "leaseDurationSeconds": 15}


@pytest.mark.parametrize(("holder", "spec"), [("", {}), ("gone_1", LONG_AGO)], ids=["released", "expired"])
async def test_a_lease_that_nobody_holds_is_in_nobodys_way(target, cluster, holder, spec):
    cluster.lease(holder, "kube-system", **spec)
    async with connect(target) as client:
        await client.summary()
    assert set(cluster.forwards) == {("bayplan-system", "bayplan-7f-x2", "10259")}


async def test_a_lease_that_ran_out_long_ago_is_held_by_nobody(target, cluster):
    cluster.lease("bayplan-7f-x2_0b5e", **LONG_AGO)
    assert str(await failure(target)).startswith("nobody holds Lease bayplan-system/bayplan")


@pytest.mark.parametrize("namespaces", [(), ("bayplan-system", "kube-system")], ids=["none", "two"])
async def test_at_its_address_a_scheduler_is_asked_whatever_leases_there_are(
    kubeconfig, cluster, scheduler, authority, namespaces
):
    cluster.answers.pop(LEASE.format("bayplan-system"))
    for each in namespaces:
        cluster.lease("theirs_1", each)
    cluster.answers[TOKEN.format("kube-system")] = cluster.answers.pop(TOKEN.format("bayplan-system"))
    server = f"https://127.0.0.1:{scheduler.port}"
    async with connect(Target(kubeconfig=kubeconfig, server=server, authority=authority)) as client:
        assert json.loads(await client.summary())["nodes"] == 1
    assert cluster.forwards == []


async def test_a_lease_that_nobody_holds_is_said(target, cluster):
    cluster.lease("")
    assert str(await failure(target)).startswith("nobody holds Lease bayplan-system/bayplan")


@pytest.mark.parametrize(
    ("path", "right"),
    [
        (LEASE.format("bayplan-system"), "`get` of leases"),
        (POD.format("bayplan-system", "bayplan-7f-x2"), "`get` of pods"),
        (TOKEN.format("bayplan-system"), "`create` of serviceaccounts/token"),
    ],
)
async def test_a_right_that_is_missing_is_named(target, cluster, path, right):
    cluster.answers[path] = (403, {"reason": "Forbidden", "message": "no"})
    assert right in str(await failure(target))


async def test_an_api_server_that_does_not_answer_is_named(kubeconfig, target, cluster):
    kubeconfig.write_text(kubeconfig.read_text().replace(cluster.url, "http://127.0.0.1:1"))
    assert str(await failure(target)).startswith("the API server at http://127.0.0.1:1 does not answer: GET /apis/")


async def test_a_port_that_may_not_be_forwarded_is_named_with_the_right(target, cluster):
    cluster.forward_status = 403
    assert "`create` of pods/portforward" in str(await failure(target))


async def test_a_pod_that_is_gone_is_named(target, cluster):
    cluster.forward_status = 404
    error = await failure(target)
    assert isinstance(error, NotReachedError)
    assert "pod bayplan-system/bayplan-7f-x2: no port can be forwarded: 404" in str(error)


async def test_a_scheduler_that_does_not_listen_is_said(target, cluster, scheduler):
    await scheduler.server.stop()
    error = await failure(target)
    assert isinstance(error, NotReachedError)
    assert "does not answer" in str(error)


async def test_an_account_that_is_not_there_is_named(target, cluster):
    cluster.answers.pop(TOKEN.format("bayplan-system"))
    assert "there is no ServiceAccount bayplan-system/bayplan-reader" in str(await failure(target))


async def test_who_may_not_see_the_path_is_told_of_the_role(kubeconfig, cluster):
    cluster.account("stranger-token")
    error = await failure(Target(kubeconfig=kubeconfig))
    assert (isinstance(error, RefusedError), error.status) == (True, 403)
    assert "ClusterRole bayplan-reader" in str(error)


async def test_at_an_address_the_certificate_is_checked(kubeconfig, scheduler, authority, cluster):
    url = f"https://127.0.0.1:{scheduler.port}"
    async with connect(Target(kubeconfig=kubeconfig, server=url, authority=authority)) as client:
        assert json.loads(await client.summary())["nodes"] == 1
    async with connect(Target(kubeconfig=kubeconfig, server=url, insecure=True)) as client:
        assert json.loads(await client.summary())["nodes"] == 1
    told = str(await failure(Target(kubeconfig=kubeconfig, server=url)))
    assert told.startswith(f"the scheduler at {url} is not trusted: its certificate: ")
    assert told.endswith("; name the authority by --certificate-authority, or take any by --insecure-skip-tls-verify")
    assert cluster.forwards == []


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ("10.0.0.1:10259", "is no address such as"),
        ("ftp://10.0.0.1", "is no address such as"),
        ("https://", "is no address such as"),
        ("https://h:99999", "is no address such as"),
        ("https://u:p@h", "is no address such as"),
        ("https://h/path", "is no address such as"),
        ("http://10.0.0.1:8080", "http is for a port of this machine"),
    ],
)
async def test_an_address_that_is_none_is_refused(server, said):
    assert said in str(await failure(Target(server=server)))


async def test_at_an_address_without_a_kubeconfig_it_says_that_a_token_will_do(tmp_path):
    told = await failure(Target(kubeconfig=tmp_path / "none", server="https://127.0.0.1:1"))
    assert str(told).endswith("; a token by --token-file needs no kubeconfig")


async def test_an_address_that_speaks_no_tls_is_said_without_its_words(tmp_path):
    file = tmp_path / "token"
    file.write_text("secret")

    async def answer(reader, writer):
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as listening:
        url = f"https://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        told = await failure(Target(server=url, token_file=file))
    assert str(told) == f"what listens at {url} does not speak TLS: --http-port of this machine is asked by http://"


@pytest.mark.parametrize("text", ["", "two words", "\x1b[2J", "ünsicher"])
async def test_a_file_without_a_token_is_refused_by_name(kubeconfig, cluster, tmp_path, text):
    file = tmp_path / "token"
    file.write_text(text)
    target = Target(kubeconfig=kubeconfig, namespace="bayplan-system", token_file=file)
    assert str(await failure(target)) == f"--token-file: {file} holds no token"
