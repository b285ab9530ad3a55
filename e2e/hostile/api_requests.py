"""H68 to H75, H80 to H85, H90 to H97: bindings, status, Events, nodes, budgets and leases that nobody should send."""

from dataclasses import replace

from e2e.controlplane.client import Object, path_of
from e2e.controlplane.objects import node
from e2e.hostile.amounts import CPU
from e2e.hostile.pods import MAX, on_node, one
from e2e.hostile.row import BINDS, NAMESPACE, Case, Request, Row, bind, change, create, create_pod, delete

ODD = {"key": "example.com/odd", "effect": "NoSchedule"}
_BINDER, _CLUSTERS = "tests/scheduler/test_binder.py::", "tests/hostile/test_clusters.py::"
_NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


def _odd_node(name: str, amounts: Object, *, status: int = 201, taint: Object = ODD) -> Request:
    """A node that only pods come to that tolerate everything."""
    document = node(name, labels={"pool": name.partition("-")[0]}, taints=[taint])
    document["status"] |= {"capacity": amounts, "allocatable": amounts}
    return create(status, "nodes", document)


def _no_node(name: str = "refused", *, labels: Object | None = None, **amounts: str) -> Request:
    return create(422, "nodes", node(name, labels=labels, **amounts))  # type: ignore[arg-type]  # amounts by name


def _condition(status: int, characters: int) -> Request:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "x" * characters}
    return change(status, "told", {"status": {"conditions": [condition]}}, subresource="status")


def _nominate(status: int, name: str, node_name: str) -> Request:
    return change(status, name, {"status": {"nominatedNodeName": node_name}}, subresource="status")


def _event(status: int, name: str, **fields: object) -> Request:
    document = {
        "metadata": {"name": name, "namespace": NAMESPACE},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "example.com/hostile",
        "reportingInstance": "hostile-0",
        "action": "Testing",
        "reason": "Testing",
        "type": "Normal",
        "note": "x",
        "regarding": {"kind": "Pod", "name": "told", "namespace": NAMESPACE},
        **fields,
    }
    return create(status, "events", document)


def _budget(status: int, name: str, **spec: object) -> Request:
    metadata = {"name": name, "namespace": NAMESPACE}
    return create(status, "poddisruptionbudgets", {"metadata": metadata, "spec": spec})


def _lease(status: int, name: str, **spec: object) -> Request:
    return create(status, "leases", {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec})


def _list(status: int, query: str) -> Request:
    return Request(status, "GET", f"{path_of('pods', namespace=NAMESPACE)}?{query}")


def _pod_of_size(status: int, megabytes: float) -> Request:
    """A pod with tolerations of so much text."""
    tolerations = [{"key": "a" * 60, "operator": "Exists", "value": ""}] * round(megabytes * 1e6 / 60)
    return create_pod(status, "large", tolerations=tolerations)


API_REQUESTS: tuple[Row, ...] = (
    Row(
        68,
        "binding of a pod that ended unbound",
        requests=(
            create_pod(201, "ended"),
            change(200, "ended", {"status": {"phase": "Failed"}}, subresource="status"),
            bind(201, "ended", "n0"),
        ),
        note="never binds one",
        shown_by=("e2e/scenarios/test_binding.py::test_a_pod_that_ended_before_it_was_bound_stays_unbound",),
    ),
    Row(
        69,
        "binding to a node that is missing; to `<script>`, `../../x y`, which 1.37 no longer takes",
        before=(
            create_pod(201, "to-a-missing-node"),
            bind(201, "to-a-missing-node", "no-such-node"),
            create_pod(201, "to-html"),
            bind(500, "to-html", "<script>alert(1)</script>", before_1_37=201),
            create_pod(201, "to-a-path"),
            bind(500, "to-a-path", "../../x y", before_1_37=201),
        ),
        note="harms nobody",
        shown_by=(f"{_CLUSTERS}test_pods_that_an_older_api_server_bound_to_a_node_that_cannot_be_harm_nobody",),
    ),
    Row(
        70,
        "binding with labels and annotations, which the pod then has",
        requests=(
            create_pod(201, "labelled"),
            bind(201, "labelled", "n0", labels={"a": "b"}, annotations={"c": "d"}),
        ),
        note="sends none",
        shown_by=("e2e/scenarios/test_binding.py::test_binding_leaves_no_trace_on_the_pod_but_its_node_and_condition",),
    ),
    Row(
        71,
        "binding with another UID or version, twice, of a gated pod, one that ends, one that is missing",
        requests=(
            create_pod(201, "once"),
            bind(409, "once", "n0", uid="00000000-0000-0000-0000-000000000000"),
            bind(409, "once", "n0", resourceVersion="1"),
            bind(201, "once", "n0"),
            bind(409, "once", "n0"),
            create_pod(201, "closed", schedulingGates=[{"name": "example.com/gate"}]),
            bind(409, "closed", "n0"),
            bind(404, "missing", "n0"),
        ),
        note="reads the pod after a refusal",
        shown_by=(
            f"{_BINDER}test_a_pod_that_is_no_longer_ours_to_place_is_gone",
            f"{_BINDER}test_a_deleted_pod_is_gone",
        ),
    ),
    Row(
        72,
        "binding to a Pod; to nothing; under another name",
        requests=(
            create_pod(201, "bound-oddly"),
            bind(500, "bound-oddly", "n0", kind="Pod"),
            bind(500, "bound-oddly", ""),
            bind(400, "bound-oddly", "n0", name="another"),
        ),
        note="reads the pod after a 500",
        shown_by=(f"{_BINDER}test_an_answer_that_leaves_it_open_is_a_failure_if_the_pod_is_unbound",),
    ),
    Row(
        73,
        "nomination to `<x>`; to a node that is missing; of a pod that is bound",
        requests=(
            create_pod(201, "nominated"),
            _nominate(422, "nominated", "<x>"),
            _nominate(200, "nominated", "no-such-node"),
        ),
        note="takes back one to a node that is gone",
        shown_by=("e2e/scenarios/test_preemption.py::test_a_nomination_to_a_node_that_is_deleted_is_taken_back",),
    ),
    Row(
        74,
        "a condition's message of 100 kB, 1.4 MB, 1.6 MB, 3.3 MB",
        requests=(
            create_pod(201, "told"),
            _condition(200, 100_000),
            _condition(200, 1_400_000),
            _condition(500, 1_600_000),
            _condition(413, 3_300_000),
        ),
        note="writes 32 KiB at most",
        shown_by=("tests/scheduler/test_api_calls.py::test_a_message_has_a_bound_however_long_the_reasons",),
    ),
    Row(
        75,
        "an Event's note of 1,024 and 1,025 characters; a reason of 129; no action; type `Bad`",
        requests=(
            _event(201, "long-note", note="x" * 1024),
            _event(422, "longer-note", note="x" * 1025),
            _event(422, "long-reason", reason="x" * 129),
            _event(422, "no-action", action=""),
            _event(422, "bad-type", type="Bad"),
        ),
        note="cuts notes between characters",
        shown_by=("tests/scheduler/test_event_recorder.py::test_a_note_is_cut_to_1024_bytes_with_a_mark",),
    ),
    Row(
        80,
        "a node with negative cpu, half a pod, a name in capitals, a bad label",
        requests=(_no_node(cpu="-1"), _no_node(pods="1.5"), _no_node("Upper"), _no_node(labels={"a": "<b>"})),
        note="odd nodes keep no pod from the others",
        shown_by=(f"{_CLUSTERS}test_an_odd_node_does_not_keep_pods_from_the_others",),
    ),
    Row(
        81,
        "nodes with cpu `1e100` or `1e1000000` and 10^10 pods",
        {
            "on-huge-1": replace(on_node("", "huge-1"), kube_scheduler=CPU),
            "on-huge-2": replace(on_node("", "huge-2"), kube_scheduler=CPU),
            "max-on-huge-1": replace(on_node(CPU, "huge-1", {"cpu": "1e100"}), kube_scheduler=BINDS),
            "max-on-huge-2": replace(on_node(CPU, "huge-2", {"cpu": "1e1000000"}), kube_scheduler=BINDS),
            "on-either-huge-node": Case(
                "", {"tolerations": [{"operator": "Exists"}], "nodeSelector": {"pool": "huge"}}, kube_scheduler=CPU
            ),
        },
        before=(
            _odd_node("huge-1", {"cpu": "1e100", "memory": "1e100", "pods": "1e10"}),
            _odd_node("huge-2", {"cpu": "1e1000000", "memory": str(MAX), "pods": "110", "example.com/gpu": str(MAX)}),
        ),
    ),
    Row(
        82,
        "nodes with nothing, without room for pods, without allocatable",
        {
            "on-zero": on_node(CPU, "zero"),
            "on-podless": on_node("Too many pods", "podless"),
            "on-bare": on_node(CPU, "bare"),
        },
        before=(
            _odd_node("zero", {"cpu": "0", "memory": "0", "pods": "110"}),
            _odd_node("podless", {"cpu": "4", "memory": "8Gi", "pods": "0"}),
            _odd_node("bare", {}),
        ),
    ),
    Row(
        83,
        "a node that is not ready yet",
        {"on-a-node-not-ready": Case("untolerated taint", {"nodeSelector": {"kubernetes.io/hostname": "new"}})},
        before=(_odd_node("new", {"cpu": "4", "memory": "8Gi", "pods": "110"}, taint=_NOT_READY),),
    ),
    Row(
        84,
        "budgets of -1, 150 %, `abc`, both kinds; without a selector, for all pods, for 2^31-1 of them",
        requests=(
            _budget(422, "negative", minAvailable=-1),
            _budget(422, "above-all", minAvailable="150%"),
            _budget(422, "text", minAvailable="abc"),
            _budget(422, "both", minAvailable=1, maxUnavailable=1),
        ),
        before=(
            _budget(201, "none", maxUnavailable="100%"),
            _budget(201, "all", maxUnavailable="100%", selector={}),
            _budget(201, "empty", maxUnavailable="100%", selector={"matchExpressions": [one("app", "DoesNotExist")]}),
            _budget(201, "most", minAvailable=2**31 - 1, selector={}),
        ),
        note="preemption gets along with any",
        shown_by=(f"{_CLUSTERS}test_preemption_gets_along_with_any_budget",),
    ),
    Row(
        85,
        "a Lease of 0 s, of -1 s; a time without microseconds; nobody as its holder",
        requests=(
            _lease(422, "of-nothing", leaseDurationSeconds=0),
            _lease(422, "of-less", leaseDurationSeconds=-1),
            _lease(400, "of-a-second", renewTime="2026-01-01T00:00:00"),
            _lease(201, "of-nobody", holderIdentity=""),
        ),
        note="one that says nothing is taken after its time",
        shown_by=("tests/leaderelection/test_lease.py::test_a_lease_that_says_nothing_names_nobody_and_is_no_release",),
    ),
    Row(90, "a pod with texts of 1.6 MB, of 3.1 MB", requests=(_pod_of_size(500, 1.6), _pod_of_size(413, 3.1))),
    Row(
        91,
        "schedulerName `<script>`, of 10,000 characters",
        requests=(
            create_pod(201, "of-html", schedulerName="<script>"),
            create_pod(201, "of-nobody", schedulerName="x" * 10_000),
        ),
        note="left alone",
        shown_by=("e2e/scenarios/test_binding.py::test_pods_of_other_schedulers_are_left_alone",),
    ),
    Row(
        92,
        "a list with a `continue` token of somebody's; of a version yet to come",
        requests=(
            _list(400, "limit=1&continue=x"),
            _list(504, f"resourceVersion={MAX}&resourceVersionMatch=NotOlderThan"),
        ),
        note="lists anew",
        shown_by=(
            "tests/api/test_reflector.py::test_an_expired_continue_token_restarts_the_list_and_at_last_takes_it_whole",
        ),
    ),
    Row(
        93,
        "a user without rights",
        note="is refused everything (403)",
        shown_by=("e2e/scenarios/test_controlplane.py::test_a_user_without_a_role_may_do_nothing",),
    ),
    Row(
        94,
        "a patch of nodeName, schedulerName, priority, nodeSelector; a gate more",
        requests=(
            create_pod(201, "patched"),
            *(
                change(422, "patched", {"spec": each})
                for each in (
                    {"nodeName": "n0"},
                    {"schedulerName": "bayplan"},
                    {"priority": 5},
                    {"nodeSelector": {"pool": "plain"}},
                    {"schedulingGates": [{"name": "example.com/gate"}]},
                )
            ),
        ),
    ),
    Row(
        95,
        "a deletion for another UID or version",
        requests=(
            create_pod(201, "kept"),
            delete(409, "kept", {"preconditions": {"uid": "00000000-0000-0000-0000-000000000000"}}),
            delete(409, "kept", {"preconditions": {"resourceVersion": "1"}}),
        ),
        note="ends victims by their UID",
        shown_by=(
            "tests/scheduler/preemption/test_victims.py::test_a_victim_that_is_gone_or_was_recreated_counts_as_ended",
        ),
    ),
    Row(
        96,
        "configuration files: aliases that unfold into millions, negative weights, a profile twice, unsorted shapes",
        note="refused with the field's path",
        shown_by=(
            "tests/config/test_document.py::test_the_worst_files_of_allowed_size_are_refused",
            "tests/config/test_validation.py::test_a_broken_rule_is_one_error_at_its_field",
        ),
    ),
    Row(
        97,
        "HTTP to bayplan's own port: headers of a megabyte, slow ones, `..%2f`, very long queries",
        note="a bare 4xx, or cut off",
        shown_by=(
            "tests/server/test_http.py::test_a_hostile_request_gets_a_bare_4xx_and_no_log_noise",
            "tests/server/test_strangers.py::test_a_head_that_never_ends_is_cut_off",
        ),
    ),
)
