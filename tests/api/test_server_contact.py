"""What the log says of an API server that cannot be reached."""

import logging

import pytest
from tests.api.reflecting import PODS, pod, reflecting
from tests.clock import Clock
from tests.faults import faults
from tests.waiting import until

from bayplan.api.backoff import ROLES_SECONDS, ServerContact
from bayplan.logs.formats import V2, V4


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def contact(clock, caplog):
    caplog.set_level(logging.INFO, logger="bayplan")
    return ServerContact("https://10.0.0.1:6443", clock)


def test_an_outage_is_one_line_at_its_begin_and_one_at_its_end(contact, clock, caplog):
    for _ in range(42):
        contact.failed("Connection refused")
        clock.now += 1.5
    contact.answered()
    contact.answered()
    assert caplog.messages == [
        "cannot reach the API server server=https://10.0.0.1:6443 reason='Connection refused'",
        "the API server is reached again server=https://10.0.0.1:6443 failedRequests=42 seconds=63.0",
    ]


def test_each_outage_is_counted_by_itself(contact, caplog):
    for _ in range(2):
        contact.failed("no route")
        contact.answered()
    assert [message.split()[-2] for message in caplog.messages[1::2]] == ["failedRequests=1"] * 2


def test_a_server_that_answers_is_no_news(contact, caplog):
    contact.answered()
    contact.requested("GET", "200", 0.1)
    contact.requested("POST", "409", 0.1)
    assert (caplog.messages, contact.is_lost) == ([], False)


def test_a_call_that_has_no_answer_while_later_ones_have_is_no_outage(contact, clock, caplog):
    clock.now += 4
    contact.requested("GET", "200", 0.1)
    clock.now += 6
    contact.requested("GET", "<error>", 10.0)
    assert (caplog.messages, contact.is_lost) == ([], False)
    contact.requested("GET", "<error>", 5.9)
    assert contact.is_lost, "nothing was answered since that was sent"


def test_a_write_without_an_answer_is_no_outage_as_a_webhook_may_hold_it(contact, caplog):
    contact.requested("POST", "<error>", 10.0)
    assert (caplog.messages, contact.is_lost) == ([], False)


@pytest.mark.parametrize("code", ["200", "201", "403", "404", "409", "429"])
def test_any_answer_of_the_server_itself_ends_the_outage(contact, code):
    contact.requested("GET", "<error>", 0.1)
    contact.requested("POST", "500", 0.1)
    assert contact.is_lost, "a webhook's trouble is no answer and no absence"
    contact.requested("POST", code, 0.1)
    assert not contact.is_lost


def test_a_5xx_begins_no_outage(contact, caplog):
    contact.requested("POST", "503", 0.1)
    assert caplog.messages == []


def test_a_watch_that_is_cut_is_told_at_v_2_unless_each_is(contact, caplog):
    levels = [contact.interrupted("reset", failures, was_open=True) for failures in range(1, 6)]
    assert levels == [V2, V2, V2, logging.WARNING, logging.WARNING]
    assert caplog.messages == []
    assert contact.interrupted("refused", 1, was_open=False) == V4
    assert contact.is_lost


async def test_a_reflector_in_an_outage_tells_nothing_but_its_begin_and_its_end(server, contact, caplog):
    server.put(PODS, pod("a"))
    server.inject(faults.Reset(), times=20)
    async with reflecting(server, contact=contact) as (reflector, _):
        await until(lambda: reflector.synced)
        await until(lambda: not contact.is_lost)
    told = [message.split(" server=")[0] for message in caplog.messages if "listed" not in message]
    assert told == ["cannot reach the API server", "the API server is reached again"]
    # aiohttp sends a GET twice before it gives up.
    assert "failedRequests=10 " in caplog.text


def test_a_server_that_came_back_may_not_have_read_its_roles_for_a_moment(contact, clock):
    contact.answered()
    assert not contact.has_unread_roles(), "it was never away"
    contact.failed("Connection refused")
    contact.answered()
    assert contact.has_unread_roles()
    clock.now += ROLES_SECONDS
    assert not contact.has_unread_roles()


def test_a_login_that_is_not_known_is_one_line_until_it_is(contact, caplog):
    assert {contact.unknown("401 Unauthorized") for _ in range(20)} == {V4}
    contact.requested("POST", "401", 0.1)
    assert caplog.messages == [
        "the API server refuses our login server=https://10.0.0.1:6443 reason='401 Unauthorized'"
    ]
    assert not contact.is_lost, "who refuses is there"
    contact.answered()
    contact.answered()
    assert caplog.messages[1:] == ["the API server takes our login again server=https://10.0.0.1:6443"]


async def test_watches_whose_login_is_not_known_tell_of_it_once_together(server, contact, caplog):
    server.put(PODS, pod("a"))
    server.inject(faults.Refuse(401), times=20)
    async with reflecting(server, contact=contact) as (one, _), reflecting(server, contact=contact) as (other, _):
        await until(lambda: one.synced and other.synced)
    told = [message.split(" server=")[0] for message in caplog.messages if "listed" not in message]
    assert told == ["the API server refuses our login", "the API server takes our login again"]
