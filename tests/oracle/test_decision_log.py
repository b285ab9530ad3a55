"""What is read of kube-scheduler's log is about the pods of this case."""

import json

import pytest
from tests.oracle.decision_log import DecisionLog

POD = {"name": "a", "namespace": "ns"}
ADDED = {"msg": "Add event for unscheduled pod", "pod": POD}
ATTEMPT = {"msg": "Attempting to schedule pod", "pod": POD}
NO_FIT = {"msg": "Unable to schedule pod; no fit; waiting", "pod": POD, "err": "0/1 nodes are available"}
BOUND = {"msg": "Successfully bound pod to node", "pod": POD, "node": "n1"}
SEARCH = [
    {"msg": "Dry run the preemption", "pod": POD, "potentialNodesNumber": 1, "candidatesNumber": 1},
    {"msg": "the target node for the preemption is determined", "node": "n9"},
]
ENDED = {"msg": "Preemptor Pod preempted victim Pod", "preemptor": POD, "victim": {"name": "v", "namespace": "ns"}}
CLAIM_GONE = 'running PreBind plugin "DynamicResources": resourceclaims.resource.k8s.io "c" not found'


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log"
    path.touch()
    followed = DecisionLog(path)

    def write(*entries):
        with path.open("a") as file:
            file.writelines(json.dumps(entry, separators=(",", ":")) + "\n" for entry in entries)

    followed.write = write
    return followed


@pytest.mark.parametrize("late", [[NO_FIT], [BOUND], [*SEARCH, NO_FIT], [ENDED]])
def test_what_an_attempt_of_the_case_before_still_says_is_no_decision_on_the_pod_of_this_one(log, late):
    log.write(ADDED, ATTEMPT)
    log.wait(lambda: log.seen["waiting-pod-add"], "the pod")
    log.forget()
    log.write(*late[:-1], ADDED, late[-1], ATTEMPT, {**BOUND, "node": "n2"})
    found = log.decision("ns/a")
    assert (found.node, found.nominated, found.message) == ("n2", None, None)
    assert not log.evictions


def test_what_a_bind_of_the_case_before_misses_is_no_decision_either(log):
    log.write(ADDED, ATTEMPT, {"msg": "Error scheduling pod; retrying", "pod": POD, "err": CLAIM_GONE}, BOUND)
    assert log.decision("ns/a").node == "n1"


def test_a_search_for_victims_belongs_to_the_decision(log):
    log.write(ADDED, ATTEMPT, *SEARCH, NO_FIT)
    assert log.decision("ns/a").nominated == "n9"
