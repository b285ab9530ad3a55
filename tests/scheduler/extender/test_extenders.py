import asyncio
from dataclasses import replace
from datetime import timedelta

import msgspec
import pytest
from tests.builders import make_container, make_node, make_pod, make_pod_info
from tests.faults.certificates import Authority
from tests.plugins.preemption.worlds import World
from tests.scheduler.extender.extender_server import ExtenderServer, keep, points
from tests.scheduler.extender.scene import ExtendedScene, at

from bayplan.api.errors import CredentialsError
from bayplan.api.objects import ResourceRequirements
from bayplan.cache.pod_info import PodInfo
from bayplan.config.connections import Extender, ExtenderManagedResource, ExtenderTLSConfig
from bayplan.config.load import default_configuration
from bayplan.config.plugin_sets import leave_to_extenders
from bayplan.framework.cluster_event import NODE_ADD
from bayplan.scheduler.attempt_log import runner_up
from bayplan.scheduler.decision import FitError, Placement
from bayplan.scheduler.extender.client import ExtenderClient
from bayplan.scheduler.extender.wire import ExtenderError, is_interested, read_filter_answer, read_priorities

NAMES = Extender(filter_verb="filter", prioritize_verb="prioritize", weight=1, node_cache_capable=True)
WHOLE = replace(NAMES, node_cache_capable=False)
FILTERS = replace(NAMES, prioritize_verb="")
RANKS = replace(NAMES, filter_verb="")


class Scene(ExtendedScene):
    """A cluster of four equal nodes, the cycle, and extenders in front of it."""

    def __init__(self, stack, *extenders, nodes=4):
        configuration = replace(default_configuration(), extenders=extenders)
        world = World(*(make_node(f"n{number}") for number in range(nodes)), configuration=configuration)
        super().__init__(stack, world, extenders)

    async def decide(self, **pod):
        return await self.schedule(make_pod("p", **(pod or {"cpu": "1"})))

    async def node(self, **pod):
        outcome = await self.decide(**pod)
        assert isinstance(outcome, Placement)
        return outcome.node_name


@pytest.mark.parametrize("extender", [NAMES, WHOLE], ids=["names", "whole nodes"])
async def test_an_extender_narrows_the_nodes_and_ranks_the_rest(stack, server, extender):
    server.answers = {"filter": keep("n1", "n3"), "prioritize": points(n1=3, n3=4, n0=10)}
    outcome = await Scene(stack, at(server, extender)).decide()
    assert (outcome.node_name, outcome.feasible_nodes) == ("n3", 2)
    (_, asked), (_, ranked) = server.calls
    assert asked["Pod"]["metadata"]["annotations"] == {"a": "b"}
    if extender is NAMES:
        assert (asked["NodeNames"], asked["Nodes"]) == (["n0", "n1", "n2", "n3"], None)
        assert ranked["NodeNames"] == ["n1", "n3"]
    else:
        assert asked["NodeNames"] is None
        assert [item["status"]["allocatable"]["cpu"] for item in asked["Nodes"]["items"]] == ["4"] * 4


async def test_scores_are_ten_times_the_weight_on_top_of_the_plugins(stack, server):
    server.answers = {"prioritize": points(n2=7)}
    plain = await Scene(stack).decide()
    outcome = await Scene(stack, at(server, RANKS, weight=3)).decide()
    assert outcome.node_name == "n2"
    assert outcome.score == plain.score + 7 * 3 * 10


async def test_the_runner_up_is_told_with_the_extenders_points(stack, server):
    server.answers = {"filter": keep("n1", "n2", "n3"), "prioritize": points(n1=3, n2=4, n0=10)}
    scene = Scene(stack, at(server, NAMES))
    decision = await scene.cycle.schedule(make_pod_info("p", cpu="1"), scene.world.framework)
    second = runner_up(decision)
    assert (decision.outcome.node_name, second.node_name) == ("n2", "n1")
    assert decision.outcome.score - second.score == 10


async def test_scores_of_several_extenders_add_up(stack, server, other):
    server.answers, other.answers = {"prioritize": points(n1=5, n2=4)}, {"prioritize": points(n2=2)}
    assert await Scene(stack, at(server, RANKS), at(other, RANKS)).node() == "n2"


async def test_filters_follow_each_other_and_ignorable_ones_come_last(stack, server, other):
    server.answers, other.answers = {"filter": keep("n1", "n2")}, {"filter": keep("n2", "n3")}
    first, second = at(server, FILTERS, ignorable=True), at(other, FILTERS)
    assert await Scene(stack, first, second).node() == "n2"
    assert server.calls[0][1]["NodeNames"] == ["n2", "n3"]


async def test_one_node_left_is_not_ranked(stack, server):
    server.answers = {"filter": keep("n1")}
    outcome = await Scene(stack, at(server, NAMES)).decide()
    assert (outcome.node_name, outcome.score) == ("n1", None)
    assert [verb for verb, _ in server.calls] == ["filter"]


async def test_what_extenders_say_of_nodes_is_in_the_message(stack, server):
    failed = {"n0": "no licence", "n1": "no licence", "n2": "hot", "elsewhere": "x"}
    server.answers = {"filter": keep(failed=failed, unresolvable={"n2": "broken"})}
    scene = Scene(stack, at(server, NAMES))
    outcome = await scene.decide()
    assert isinstance(outcome, FitError)
    assert outcome.message.startswith("0/4 nodes are available: 1 broken, 2 no licence.")
    assert outcome.diagnosis.rejector_plugins == {"Extender"}
    (registration,) = scene.world.framework.registrations()["Extender"]
    assert NODE_ADD.matches(registration.event)
    assert registration.hint is None


async def test_reasons_of_filters_and_of_extenders_are_counted_together(stack, server):
    server.answers = {"filter": keep(failed={"n1": "hot"})}
    scene = Scene(stack, at(server, NAMES), nodes=2)
    scene.world.cache.set_node(make_node("n0", cpu="500m"))
    assert (await scene.decide()).message.startswith("0/2 nodes are available: 1 Insufficient cpu, 1 hot.")


async def test_nobody_is_asked_about_a_pod_that_fits_nowhere(stack, server):
    outcome = await Scene(stack, at(server, NAMES)).decide(cpu="99")
    assert isinstance(outcome, FitError)
    assert server.calls == []


async def test_an_error_status_fails_the_attempt_with_kube_schedulers_words(stack, server):
    server.status = 500
    with pytest.raises(ExtenderError) as caught:
        await Scene(stack, at(server, NAMES)).decide()
    url = server.url.rstrip("/")
    assert str(caught.value) == f"failed filter with extender at URL {url}/filter, code 500"


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"Error": "out of licences"}, "out of licences"),
        ({"nodenames": ["n9"]}, 'claims a filtered node "n9" which is not found in the input node list'),
        ("{", "the answer is not JSON"),
        ([], "the answer is not an object"),
        ({"NodeNames": 3}, "the answer's nodenames is a int, not a list"),
        ({"NodeNames": [], "FailedNodes": {"n1": 1}}, "failednodes holds something that is not text"),
        ("[" * 100_000, "the answer is not JSON"),
    ],
)
async def test_a_wrong_answer_fails_the_attempt_unless_the_extender_is_ignorable(stack, server, answer, told):
    server.answers = {"filter": lambda body: answer}
    with pytest.raises(ExtenderError) as caught:
        await Scene(stack, at(server, FILTERS)).decide()
    assert told in str(caught.value)
    assert await Scene(stack, at(server, FILTERS, ignorable=True)).node() == "n0"


async def test_a_slow_or_missing_extender_is_given_up_after_its_timeout(stack, server):
    server.delay = 5.0
    slow = at(server, NAMES, http_timeout=timedelta(seconds=0.1))
    with pytest.raises(ExtenderError, match=r'^Post "http://.*/filter": context deadline exceeded'):
        await Scene(stack, slow).decide()
    with pytest.raises(ExtenderError, match=r'^Post "http://127.0.0.1:1/filter": '):
        await Scene(stack, replace(NAMES, url_prefix="http://127.0.0.1:1")).decide()


async def test_a_prioritizer_that_fails_gives_no_scores(stack, server):
    server.answers = {"prioritize": lambda body: "nonsense"}
    assert await Scene(stack, at(server, RANKS)).node() == "n0"


async def test_a_node_that_fills_up_while_extenders_think_is_not_chosen(stack, server):
    server.answers = {"filter": keep("n1", "n2"), "prioritize": points(n1=10)}
    scene = Scene(stack, at(server, NAMES))
    scene.meanwhile = lambda: scene.world.cache.set_pod(make_pod_info("q", cpu="4", node="n1", uid="q"))
    outcome = await scene.decide()
    assert (outcome.node_name, outcome.feasible_nodes) == ("n2", 1)


def test_of_nodes_with_the_same_total_the_one_searched_first_is_chosen(stack):
    world = Scene(stack).world
    decision = world.cycle.choose(make_pod_info("p", cpu="1"), world.framework, ["n2", "n3", "n1"], {})
    assert (decision.outcome.node_name, list(decision.found)) == (
        "n2",
        [world.cache.nodes.row(f"n{i}") for i in (2, 3, 1)],
    )


async def test_when_no_node_is_left_once_the_extenders_have_thought_the_attempt_fails(stack, server):
    server.answers = {"filter": keep("n0", "n1")}
    scene = Scene(stack, at(server, NAMES), nodes=2)
    scene.meanwhile = lambda: [scene.world.cache.remove_node(name) for name in ("n0", "n1")]
    with pytest.raises(ExtenderError, match="the nodes that extenders left no longer fit the pod"):
        await scene.decide()


GPU = "example.com/gpu"
MANAGES_GPU = replace(NAMES, managed_resources=(ExtenderManagedResource(GPU, ignored_by_scheduler=True),))


def limited(name):
    container = make_container()
    return msgspec.structs.replace(container, resources=ResourceRequirements(limits={name: "1"}))


@pytest.mark.parametrize(
    ("pod", "interested"),
    [
        (make_pod(cpu="1"), False),
        (make_pod(requests={GPU: "1"}), True),
        (make_pod(containers=[limited(GPU)]), True),
        (make_pod(containers=[limited("cpu")]), False),
        (make_pod(init_containers=[limited(GPU)]), True),
    ],
)
def test_an_extender_with_managed_resources_is_asked_about_pods_that_name_one(pod, interested):
    assert is_interested(MANAGES_GPU, PodInfo(pod)) is interested
    assert is_interested(NAMES, PodInfo(pod))


async def test_a_resource_left_to_an_extender_is_not_counted_by_the_plugins(stack, server):
    server.answers = {"filter": keep("n2")}
    assert isinstance(await Scene(stack).decide(requests={GPU: "1"}), FitError)
    scene = Scene(stack, at(server, MANAGES_GPU))
    assert await scene.node(requests={GPU: "1"}) == "n2"
    assert await scene.node(cpu="1") == "n0"
    assert len(server.calls) == 1


def test_ignored_resources_take_the_place_of_the_profiles_own():
    configuration = replace(default_configuration(), extenders=(MANAGES_GPU,))
    changed = leave_to_extenders(configuration).profiles[0].plugin_config["NodeResourcesFit"]
    assert changed.ignored_resources == (GPU,)
    assert leave_to_extenders(replace(configuration, extenders=(NAMES,))).profiles == configuration.profiles


def test_scores_beyond_all_bounds_are_cut():
    extender = replace(NAMES, weight=2**62)
    scores = read_priorities(extender, b'[{"host":"a","score":9223372036854775807},{"Host":"b","Score":-9}]')
    assert scores == {"a": 2**53, "b": -(2**53)}


def test_a_node_named_twice_counts_once():
    assert read_filter_answer(NAMES, b'{"NodeNames":["a","b","a"]}', ["a", "b"]).names == ("a", "b")


async def tls_answer(tmp_path, stack, tls=None, *, enable_https=True, ask_client=False):
    authority = Authority()
    context = authority.server_context(tmp_path, ["extender.example"], ask_client=ask_client)
    server = await stack.enter_async_context(ExtenderServer(context))
    server.answers = {"filter": keep("n1")}
    config = tls(authority) if tls else None
    scene = Scene(stack, at(server, FILTERS, enable_https=enable_https, tls_config=config))
    return await scene.node(), server


def trusting(name):
    return lambda authority: ExtenderTLSConfig(ca_data=authority.pem, server_name=name)


async def test_a_certificate_is_checked_against_the_given_authority_and_name(tmp_path, stack):
    node, _ = await tls_answer(tmp_path, stack, trusting("extender.example"))
    assert node == "n1"
    with pytest.raises(ExtenderError, match="certificate"):
        await tls_answer(tmp_path, stack, trusting("other.example"))
    with pytest.raises(ExtenderError, match="certificate"):
        await tls_answer(tmp_path, stack, lambda _: ExtenderTLSConfig(ca_data=Authority().pem))


async def test_https_without_an_authority_is_not_checked_as_in_kube_scheduler(tmp_path, stack):
    assert (await tls_answer(tmp_path, stack))[0] == "n1"
    with pytest.raises(ExtenderError, match="certificate"):
        await tls_answer(tmp_path, stack, enable_https=False)


async def test_a_client_certificate_is_shown(tmp_path, stack):
    def with_certificate(authority):
        certificate, key = authority.issue("bayplan", [])
        return replace(trusting("extender.example")(authority), cert_data=certificate, key_data=key)

    _, server = await tls_answer(tmp_path, stack, with_certificate, ask_client=True)
    assert server.peers[0]["subject"] == ((("commonName", "bayplan"),),)


@pytest.mark.parametrize(
    ("tls", "told"),
    [
        (ExtenderTLSConfig(ca_file="/nowhere/ca.pem"), "No such file"),
        (ExtenderTLSConfig(ca_data=b"x", insecure=True), "with the insecure flag is not allowed"),
        (ExtenderTLSConfig(cert_data=b"x"), "one is given without the other"),
        (ExtenderTLSConfig(cert_data=b"x", key_data=b"y"), "tlsConfig"),
    ],
)
def test_a_tls_configuration_that_cannot_work_is_an_error_at_the_start(tls, told):
    with pytest.raises(CredentialsError, match=told) as caught:
        ExtenderClient(replace(NAMES, url_prefix="https://x", tls_config=tls))
    assert str(caught.value).startswith("extender https://x: tlsConfig")


async def test_prioritizers_are_asked_side_by_side(stack, server, other):
    both = asyncio.Barrier(2)

    async def meet(client, pod, nodes):
        async with asyncio.timeout(5):
            await both.wait()
        return {"n1": 1}

    scene = Scene(stack, at(server, RANKS), at(other, RANKS))
    for client in scene.clients:
        client.prioritize = meet.__get__(client)
    assert await scene.node() == "n1"
