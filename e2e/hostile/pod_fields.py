"""H29 to H33, H61 to H67, H76 to H79: names, priorities, volumes, metadata and images of pods."""

from dataclasses import replace

from e2e.controlplane.client import Object, path_of
from e2e.controlplane.objects import claim, container, local_volume, pod, storage_class
from e2e.hostile.pods import MAX, claims, expression, on_node, volumes
from e2e.hostile.row import BOUND, NAMESPACE, Case, Request, Row, change, create, create_pod, refused

_PODS = path_of("pods", namespace=NAMESPACE)
_NO_VOLUME = "didn't find available persistent volumes to bind"
_ANNOTATION_BYTES = 256 * 1024
HOLD = "example.com/hold"
"""The finalizer of pods here: nobody takes it off but who cleans up."""


def _priority_class(status: int, name: str, value: int, **more: object) -> Request:
    return create(status, "priorityclasses", {"metadata": {"name": name}, "value": value, **more})


def _annotated(status: int, size: int) -> Request:
    """A pod whose annotations take this many bytes, keys and values together."""
    document = pod("annotated", NAMESPACE, scheduler="another")
    document["metadata"]["annotations"] = {"a": "x" * (size - 1)}
    return create(status, "pods", document)


def _raw(status: int, body: str) -> Request:
    return Request(status, "POST", _PODS, body.encode())


def _storage(name: str, asked: str) -> Request:
    """A claim for this much of the class of volumes that no node can reach."""
    return create(201, "persistentvolumeclaims", claim(name, NAMESPACE, NAMESPACE, asked))


def _unreachable_volume(name: str, capacity: str) -> Request:
    reach = expression("size", "Gt", "abc")
    return create(201, "persistentvolumes", local_volume(f"{NAMESPACE}-{name}", NAMESPACE, reach, {}, storage=capacity))


_BIND_COMPLETED: Object = {
    "metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
    "spec": {"volumeName": f"{NAMESPACE}-odd"},
}

POD_FIELDS: tuple[Row, ...] = (
    Row(
        29,
        "a name of 253 characters; of 254",
        {"n" * 253: Case(BOUND)},
        (create_pod(422, "n" * 254),),
    ),
    Row(
        30,
        "priorityClassName `<script>`; one that is missing",
        requests=refused({"priorityClassName": "<script>"}, {"priorityClassName": "missing"}, status=403),
    ),
    Row(
        31,
        "priority or preemptionPolicy by hand",
        requests=refused({"priority": 5}, {"preemptionPolicy": "Never"}, status=403),
    ),
    Row(
        32,
        "PriorityClass of 1000000001; of 2^31; of -2^31; named `system-foo`; a second default",
        requests=(
            _priority_class(422, "hostile-above", 1_000_000_001),
            _priority_class(400, "hostile-beyond", 2**31),
            _priority_class(201, "hostile-least", -(2**31)),
            _priority_class(422, "system-foo", 5),
            _priority_class(201, "hostile-default", 0, globalDefault=True),
            replace(_priority_class(403, "hostile-second", 0, globalDefault=True), depends_on_a_watch=True),
        ),
        note="order pods and no more",
        shown_by=("tests/hostile/test_pods.py::test_a_priority_beyond_its_range_orders_pods_and_no_more",),
    ),
    Row(
        33,
        "a grace period of -1 s; of 2^63-1 s; of 1e30 s",
        {
            "grace-negative": Case(BOUND, {"terminationGracePeriodSeconds": -1}),
            "grace-max": Case(BOUND, {"terminationGracePeriodSeconds": MAX}),
        },
        (_raw(400, '{"metadata":{"name":"g"},"spec":{"terminationGracePeriodSeconds":1e30}}'),),
    ),
    Row(
        61,
        "a claim that is missing, named as a path, not made yet; of an exabyte; on a volume no node can reach",
        {
            "missing-claim": claims('persistentvolumeclaim "missing" not found', "missing"),
            "missing-claim-with-a-path-in-its-name": claims(
                'persistentvolumeclaim "../../etc/passwd" not found', "../../etc/passwd"
            ),
            "claim-not-made-yet": volumes(
                "waiting for ephemeral volume controller",
                {"ephemeral": {"volumeClaimTemplate": {"spec": claim("c", NAMESPACE, NAMESPACE)["spec"]}}},
            ),
            "claim-of-an-exabyte": claims(_NO_VOLUME, "exabyte"),
            "claim-of-1e100": claims(_NO_VOLUME, "most"),
            "claim-on-an-odd-volume": claims("didn't match PersistentVolume's node affinity", "odd"),
        },
        before=(
            create(201, "storageclasses", storage_class(NAMESPACE)),
            *(_storage(name, asked) for name, asked in {"exabyte": "1Ei", "most": "1e100", "odd": "1m"}.items()),
            _unreachable_volume("small", "1n"),
            _unreachable_volume("odd", "1e18"),
            change(200, "odd", _BIND_COMPLETED, resource="persistentvolumeclaims"),
        ),
    ),
    Row(
        62,
        "a resourceClaim that is missing",
        requests=(create_pod(201, "claims", resourceClaims=[{"name": "c", "resourceClaimName": "missing"}]),),
        note="holds the pod and says nothing",
        shown_by=("e2e/scenarios/test_devices.py::test_a_pod_whose_claim_is_not_there_yet_is_held_in_silence",),
    ),
    Row(
        63,
        "a RuntimeClass that is missing; no containers; two of one name",
        requests=(
            *refused({"runtimeClassName": "missing"}, status=403),
            *refused({"containers": []}, {"containers": [container({}), container({})]}),
        ),
    ),
    Row(
        64,
        "a field that does not exist; a key twice in the JSON",
        {"unknown-field": Case(BOUND, {"noSuchField": {"a": 1}})},
        (
            _raw(
                201,
                '{"metadata":{"name":"twice","name":"twice-2"},"spec":{"schedulerName":"another",'
                '"containers":[{"name":"c","image":"i"}]}}',
            ),
        ),
    ),
    Row(
        65,
        "JSON that is cut off; JSON 100,000 deep",
        requests=(_raw(400, '{"metadata":{"name":'), _raw(400, '{"a":' * 100_000 + "1" + "}" * 100_000)),
        note="an object as deep as it is long ends no process",
        shown_by=("tests/hostile/test_fuzz.py::test_an_object_as_deep_as_it_is_long_ends_no_process",),
    ),
    Row(
        66,
        "pods placed by hand on a node that is missing, and on one far too small for them",
        {"on-the-overfull-node": on_node("Insufficient cpu", "overfull")},
        before=(
            create_pod(201, "on-a-missing-node", nodeName="no-such-node"),
            create_pod(201, "far-too-big", nodeName="overfull", containers=[container({"cpu": "1e100"})]),
            create_pod(201, "too-big", nodeName="overfull", containers=[container({"cpu": "100"})]),
        ),
    ),
    Row(
        67,
        "a finalizer; an owner that is missing; creationTimestamp and deletionTimestamp by hand",
        {
            "with-a-finalizer": Case(BOUND, metadata={"finalizers": [HOLD]}),
            "of-a-missing-owner": Case(
                BOUND,
                metadata={"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "missing", "uid": "u"}]},
            ),
            "with-times": Case(
                BOUND,
                metadata={"creationTimestamp": "2000-01-01T00:00:00Z", "deletionTimestamp": "2000-01-01T00:00:00Z"},
            ),
        },
    ),
    Row(
        76,
        "annotations of HTML, control characters, text from right to left, half a surrogate pair",
        {
            "annotations": Case(
                BOUND,
                annotations={
                    "html": "<img src=x onerror=alert(1)>",
                    "control": "\0\x1b[2J\n",
                    "bidi": "\u202egnirts",
                    "surrogate": "\ud800",
                    "kopf.zalando.org/last-handled-configuration": "{broken",
                },
            )
        },
        note="none of it reaches the log",
    ),
    Row(
        77,
        "annotations of 256 KiB; of a byte more",
        {"annotations-256-kib": Case(BOUND, annotations={"a": "x" * (_ANNOTATION_BYTES - 1)})},
        (_annotated(422, _ANNOTATION_BYTES + 1),),
    ),
    Row(
        78,
        "labels `<script>`, of 64 characters, with a bad key; hostname `<b>`; nodeName `<script>`",
        requests=(
            *(create_pod(422, labels=each) for each in ({"a": "<script>"}, {"a": "x" * 64}, {"a b": "c"})),
            *refused({"hostname": "<b>"}, {"nodeName": "<script>"}),
        ),
    ),
    Row(
        79,
        "images `<script>`, with a line break, of 1,000 characters",
        {
            "image-html": Case(BOUND, {"containers": [{**container({}), "image": "<script>"}]}),
            "image-newline": Case(BOUND, {"containers": [{**container({}), "image": "a\nb"}]}),
            "image-long": Case(BOUND, {"containers": [{**container({}), "image": "x" * 1000}]}),
        },
    ),
)
