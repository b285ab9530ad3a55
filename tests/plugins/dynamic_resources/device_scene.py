"""A small cluster with devices, and an API server in memory that answers what is written on claims."""

import json

import msgspec
from msgspec.structs import replace
from tests.builders import make_container, make_node, make_pod, make_pod_info
from tests.devices.device_builders import DRIVER, exactly, make_claim, make_class, make_gpus
from tests.plugins.preemption.worlds import World

from bayplan.api.claim_objects import ResourceClaim
from bayplan.api.objects import PodResourceClaim, PodResourceClaimStatus
from bayplan.api.response import ApiCall, ApiResponse
from bayplan.cache.pod_info import PodInfo
from bayplan.config.load import default_configuration
from bayplan.framework.status import EffectError, Notice
from bayplan.metrics.table import Metrics
from bayplan.plugins.registry import build_frameworks
from bayplan.scheduler.cycle import SchedulingCycle
from bayplan.scheduler.decision import FitError, Placement

NOT_HELPFUL = "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
PLUGIN = "DynamicResources"
TIME = "2026-01-02T00:00:00Z"
"""What the clock of a World shows."""
GPU = "nvidia.com/gpu"


def claiming(*claims, name="p", made=(), **fields):
    """A pod that names claims; those in `made` are made from a template."""
    entries = [PodResourceClaim(name=each, resource_claim_name=each) for each in claims]
    entries += [PodResourceClaim(name=each, resource_claim_template_name="t") for each in made]
    statuses = [PodResourceClaimStatus(name=each, resource_claim_name=each) for each in made if each]
    pod = make_pod(name, namespace="ns", uid=name, **fields)
    spec, status = replace(pod.spec, resource_claims=entries), replace(pod.status, resource_claim_statuses=statuses)
    return PodInfo(replace(pod, spec=spec, status=status))


def claim(name="c", *requests, version="1", devices=None, node=None, users=(), time=None, **metadata):
    """A claim on one device; one that has `devices` of a node's pool has them since `time`."""
    made = make_claim(*(requests or (exactly("r"),)), name=name)
    status = {"reservedFor": [{"resource": "pods", "name": user, "uid": user} for user in users]}
    if devices is not None:
        results = [{"request": "r", "driver": DRIVER, "pool": node, "device": each} for each in devices]
        fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
        selector = {"nodeSelectorTerms": [{"matchFields": fields}]}
        status["allocation"] = {"devices": {"results": results}, "nodeSelector": selector, "allocationTimestamp": time}
    body = msgspec.to_builtins(made) | {"status": status}
    body["metadata"] |= {"resourceVersion": version, **metadata}
    return msgspec.convert(body, ResourceClaim)


def providing(name="gpu", resource=GPU, created=None):
    """A class that provides an extended resource."""
    made = make_class(name)
    spec = replace(made.spec, extended_resource_name=resource)
    return replace(made, spec=spec, metadata=replace(made.metadata, creation_timestamp=created))


def asking(count=1, resource=GPU, name="p", **requests):
    """A pod with one container that asks for devices as an extended resource."""
    container = make_container(requests={"cpu": 1, resource: count, **requests})
    return make_pod_info(name, namespace="ns", uid=name, containers=[container])


class DeviceWorld(World):
    """Two nodes, of which n2 has `count` devices, and one profile over them; what no bind waits for is in `later`."""

    def __init__(self, *objects, count=2):
        self.later = []
        self.metrics = Metrics()
        super().__init__(make_node("n1"), make_node("n2"), make_class(), make_gpus("n2", count), *objects)
        self.claims = self.cache.listers.of(ResourceClaim)

    def start(self):
        nodes, listers, clock = self.cache.nodes, self.cache.listers, lambda: self.now
        made = build_frameworks(
            default_configuration(),
            nodes,
            listers,
            self.nominator,
            clock,
            afterwards=self.later.append,
            metrics=self.metrics,
        )
        (self.framework,) = made.values()
        self.cycle = SchedulingCycle(nodes, self.nominator)

    def outcome(self, pod):
        """The node that is chosen, or the message."""
        found = self.schedule(pod)
        return found.node_name if isinstance(found, Placement) else found.message

    def reserve(self, pod):
        """Have the pod take what it gets; returns the exchange that writes it, None if there is nothing to write."""
        placement = self.schedule(pod)
        assert isinstance(placement, Placement), placement.message
        status = self.framework.run_reserve(placement.state, pod, placement.node_name)
        assert status.ok, status.message
        steps = self.framework.run_pre_bind(placement.state, pod, placement.node_name)
        return steps[0][1] if steps else None

    def unreserve(self, pod, node="n2"):
        self.framework.run_unreserve({}, pod, node)


def world_with(*objects, count=2):
    """A world whose class provides the extended resource `GPU`."""
    return DeviceWorld(providing(), *objects, count=count)


def refused(world, pod):
    found = world.schedule(pod)
    assert isinstance(found, FitError)
    return found


class ClaimServer:
    """Claims as an API server keeps them; what is written is in `calls`, and reaches the listers when `shown`."""

    def __init__(self, world, *claims):
        self.world = world
        self.claims = {each.metadata.name: msgspec.to_builtins(each) for each in claims}
        self.version = 100
        self.calls = []
        self.told = {}
        """What was written on the status of each pod."""
        self.before = {}
        """What happens right before the call of a number, from 1; returns an answer in place of the server's."""
        self.is_shown_at_once = True

    def answer(self, request):
        self.calls.append(request)
        meanwhile = self.before.pop(len(self.calls), lambda: False)()
        if meanwhile is not False:
            return meanwhile
        _, _, pod = request.path.partition("/pods/")
        if pod.endswith("/status"):
            self.told[pod.split("/")[0]] = request.body["status"]
            return ApiResponse(200, b"{}")
        name = "" if pod else [*request.path.split("/"), ""][7]
        if request.method == "POST":
            name = request.body["metadata"]["name"]
            if name in self.claims:
                return ApiResponse(409, b'{"reason": "AlreadyExists", "message": "it is there"}')
            self.claims[name] = {**request.body, "metadata": {**request.body["metadata"], "uid": f"{name}-uid"}}
            self.change(name, {})
        if name not in self.claims:
            return ApiResponse(404, b'{"reason": "NotFound", "message": "not there"}')
        if request.method == "PATCH":
            metadata = self.claims[name]["metadata"]
            if (
                request.body["metadata"].get("resourceVersion", metadata["resourceVersion"])
                != metadata["resourceVersion"]
            ):
                return ApiResponse(409, b'{"reason": "Conflict", "message": "changed"}')
            self.change(name, request.body)
        answer = ApiResponse(200, json.dumps(self.claims[name]).encode())
        if request.method == "DELETE":
            self.delete(name)
        return answer

    def change(self, name, body):
        """Write as a patch does."""
        self.version += 1
        known = self.claims[name]
        known["metadata"] |= {
            "finalizers": body.get("metadata", {}).get("finalizers", known["metadata"].get("finalizers"))
        }
        known["metadata"]["resourceVersion"] = str(self.version)
        status, change = known.setdefault("status", {}), dict(body.get("status", {}))
        users = status.get("reservedFor") or []
        added = change.pop("reservedFor", []) or []
        gone = {each["uid"] for each in added if each.get("$patch") == "delete"}
        status["reservedFor"] = [each for each in users if each["uid"] not in gone]
        status["reservedFor"] += [each for each in added if "$patch" not in each]
        status |= change
        if "allocation" in change and change["allocation"] is None:
            status["reservedFor"] = []
        if self.is_shown_at_once:
            self.show()

    def delete(self, name):
        """Have a claim go."""
        del self.claims[name]
        if self.is_shown_at_once:
            self.world.claims.delete(f"ns/{name}")

    def show(self):
        """Have the watch show all that there is."""
        for each in self.claims.values():
            self.world.claims.set(msgspec.convert(each, ResourceClaim))

    def stored(self, name="c"):
        return msgspec.convert(self.claims[name], ResourceClaim)


def perform(exchange, server, *, pauses=2000, during=lambda: None):
    """Have an exchange to its end: "done" or why it failed, and the Events that it told."""
    conversation, said, answer = exchange.begin(), [], None
    try:
        while True:
            step = conversation.send(answer)
            answer = None
            if isinstance(step, ApiCall):
                answer = server.answer(step)
            elif isinstance(step, Notice):
                said.append(f"{step.kind} {step.reason}: {step.note}")
            else:
                during()
                pauses -= 1
                assert pauses, "it waits for ever"
    except StopIteration:
        return "done", said
    except EffectError as error:
        return str(error), said
    finally:
        conversation.close()


def scene(*claims, count=2):
    """A world with claims, and the server that has them."""
    claims = claims or (claim(),)
    world = DeviceWorld(*claims, count=count)
    return world, ClaimServer(world, *claims)


def late_write(server, device):
    """What a scheduler that was killed sent for the same pod arrives."""
    written = ClaimServer(None, claim("c", devices=[device], node="n2", time=TIME, users=["p"])).claims["c"]
    server.change("c", {"status": written["status"]})
