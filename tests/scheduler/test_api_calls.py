import json
from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import make_pod

from bayplan.api.objects import Condition
from bayplan.api.response import JSON, STRATEGIC_MERGE_PATCH
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.interface import Binding
from bayplan.scheduler.api_calls import (
    binding_call,
    disruption_target_call,
    merged_patch,
    nomination_call,
    pod_path,
    pod_scheduled_call,
    rfc3339,
    rfc3339_micro,
)

NOW = datetime(2026, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)
PATH = "/api/v1/namespaces/shop/pods/web"


def web_pod(*conditions, generation=0, **fields) -> PodInfo:
    pod = make_pod("web", namespace="shop", uid="u1", conditions=conditions, **fields)
    metadata = msgspec.structs.replace(pod.metadata, generation=generation)
    return PodInfo(msgspec.structs.replace(pod, metadata=metadata))


def condition(status="False", reason="Unschedulable", message="no room"):
    return Condition(type="PodScheduled", status=status, reason=reason, message=message)


def patch(pod, reason="Unschedulable", message="no room", **options):
    call = pod_scheduled_call(pod, reason, message, NOW, **options)
    return None if call is None else json.loads(call.body)


def test_a_binding_names_pod_uid_and_node():
    call = binding_call(Binding("shop", "web", "u1", "n1"))
    assert (call.method, call.path, call.content_type) == ("POST", f"{PATH}/binding", JSON)
    assert json.loads(call.body) == {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"namespace": "shop", "name": "web", "uid": "u1"},
        "target": {"kind": "Node", "name": "n1"},
    }


def test_names_stay_within_their_segment_of_the_path():
    assert pod_path("a/b", "../x?y#z") == "/api/v1/namespaces/a%2Fb/pods/..%2Fx%3Fy%23z"
    with pytest.raises(ValueError, match="cannot be the name"):
        pod_path("shop", "..")


def test_the_condition_says_why_since_when_and_for_which_pod():
    call = pod_scheduled_call(web_pod(generation=4), "Unschedulable", "no room", NOW)
    assert (call.method, call.path, call.content_type) == ("PATCH", f"{PATH}/status", STRATEGIC_MERGE_PATCH)
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
    when = {"observedGeneration": 4, "lastTransitionTime": "2026-05-06T07:08:09Z"}
    assert json.loads(call.body) == {"metadata": {"uid": "u1"}, "status": {"conditions": [said | when]}}


def test_an_unchanged_condition_is_not_written():
    assert patch(web_pod(condition())) is None


@pytest.mark.parametrize("old", [condition(reason="SchedulerError"), condition(message="other")])
def test_the_transition_time_is_kept_while_the_status_stays_false(old):
    (written,) = patch(web_pod(old))["status"]["conditions"]
    assert (written["reason"], written["message"]) == ("Unschedulable", "no room")
    assert "lastTransitionTime" not in written


@pytest.mark.parametrize("old", [(), (condition(status="True"),), (Condition(type="Ready", status="False"),)])
def test_a_status_that_becomes_false_gets_a_transition_time(old):
    (written,) = patch(web_pod(*old))["status"]["conditions"]
    assert written["lastTransitionTime"] == "2026-05-06T07:08:09Z"
    assert "observedGeneration" not in written


def test_what_was_written_since_counts_instead_of_what_the_pod_says():
    pod = web_pod(condition(message="older"))
    assert patch(pod, written=("Unschedulable", "no room")) is None
    assert patch(pod, message="older", written=("Unschedulable", "no room")) is not None


def test_a_message_has_a_bound_however_long_the_reasons():
    (written,) = patch(web_pod(), message="x" * 5_000_000)["status"]["conditions"]
    assert len(written["message"]) == 32 * 1024
    assert patch(web_pod(condition(message="x" * 32 * 1024)), message="x" * 100_000) is None


@given(st.text(st.characters(), max_size=50))
def test_any_text_can_be_a_message(message):
    (written,) = patch(web_pod(), message=f"{message}\ud800")["status"]["conditions"]
    assert written["message"].endswith("?")


def test_times_are_utc_to_the_second_and_to_the_microsecond():
    moment = datetime(2026, 1, 1, 1, 0, 0, 7, tzinfo=timezone(timedelta(hours=2)))
    assert rfc3339(moment) == "2025-12-31T23:00:00Z"
    assert rfc3339_micro(moment) == "2025-12-31T23:00:00.000007Z"


@pytest.mark.parametrize(("nomination", "written"), [("n1", "n1"), ("", None)])
def test_a_nomination_goes_with_the_condition_even_if_the_condition_is_known(nomination, written):
    body = patch(web_pod(condition()), nomination=nomination)
    assert body["status"]["nominatedNodeName"] == written
    assert body["status"]["conditions"][0]["message"] == "no room"
    assert "nominatedNodeName" not in patch(web_pod())["status"]


def test_a_disruption_condition_of_another_reason_is_replaced_and_keeps_its_time():
    old = Condition(type="DisruptionTarget", status="True", reason="EvictionByEvictionAPI", message="x")
    body = json.loads(disruption_target_call(web_pod(old, generation=3), "bayplan", NOW).body)
    (said,) = body["status"]["conditions"]
    assert (said["reason"], said["observedGeneration"]) == ("PreemptionByScheduler", 3)
    assert "lastTransitionTime" not in said


NOMINATE = pod_scheduled_call(web_pod(), "Unschedulable", "a", NOW, nomination="n1")
EXPLAIN = pod_scheduled_call(web_pod(), "Unschedulable", "b", NOW)
END = nomination_call(web_pod(), "")


@pytest.mark.parametrize(
    ("older", "newer", "node", "message"),
    [(NOMINATE, EXPLAIN, "n1", "b"), (NOMINATE, END, None, "a"), (END, NOMINATE, "n1", "a")],
    ids=["nominate, explain", "nominate, end", "end, nominate"],
)
def test_two_waiting_patches_become_one_that_does_both(older, newer, node, message):
    status = json.loads(merged_patch(older, newer).body)["status"]
    assert (status["nominatedNodeName"], [each["message"] for each in status["conditions"]]) == (node, [message])
