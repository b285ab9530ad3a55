"""Whatever happens between Reserve and the bind, in any order, no device ends up with two pods, or lost."""

import copy
import json
import random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.devices.device_builders import DRIVER, make_gpus
from tests.examples import examples
from tests.plugins.dynamic_resources.device_scene import (
    TIME,
    ClaimServer,
    DeviceWorld,
    asking,
    claim,
    claiming,
    providing,
)

from bayplan.api.claim_objects import ResourceClaim
from bayplan.api.response import ApiCall, ApiResponse
from bayplan.devices.allocated_state import AllocatedState
from bayplan.framework.status import EffectError, Notice
from bayplan.plugins.dynamic_resources.claim_cache import ClaimCache
from bayplan.plugins.dynamic_resources.claim_writes import FINALIZER
from bayplan.plugins.dynamic_resources.extended_claim import pod_of
from bayplan.scheduler.decision import Placement

CLAIMS = ("a", "b", "c", "d")
PODS = {"p": ("a",), "q": ("b", "a"), "r": ("c",), "s": ("d",), "t": ("d", "b"), "u": (), "v": ()}
"""The claims of each pod; those without ask for a device as an extended resource."""
IN_GROUP = ("s", "t")
MOST_STEPS = 2000
LATEST_SECONDS = 60
"""By then whatever was sent has arrived and is shown."""


class Exchanging:
    """One conversation with the API server, of which a step is taken at a time."""

    def __init__(self, exchange):
        self.conversation = exchange.begin()
        self.answer, self.is_wanted, self.outcome = None, True, None
        self.step = None
        self._send()

    def _send(self):
        try:
            self.step = self.conversation.send(self.answer)
            while isinstance(self.step, Notice):  # Nothing comes between it and the next step.
                self.step = self.conversation.send(None)
        except StopIteration:
            self.outcome = "done"
        except EffectError as error:
            self.outcome = str(error)
        if self.outcome is None and not self.is_wanted:
            self.conversation.close()
            self.outcome = "given up"

    def go_on(self, answer):
        self.answer = answer
        self._send()


class Cluster(ClaimServer):
    """An API server whose watch is late, requests that are still on their way, and what became of each pod."""

    def __init__(self):
        claims = [claim(each, finalizers=[FINALIZER]) for each in CLAIMS]
        world = DeviceWorld(*claims)
        world.add(make_gpus("n1", 1), providing())
        super().__init__(world, *claims)
        self.is_shown_at_once = False
        self.unseen = []
        self.on_their_way = []
        self.unheard = []
        self.binding, self.later, self.ready, self.bound = {}, [], {}, {}

    def pod(self, name):
        if not PODS[name]:
            return asking(name=name)
        return claiming(*PODS[name], name=name, **({"group": "g"} if name in IN_GROUP else {}))

    def claims_of(self, name):
        """The claims that the pod runs with."""
        made = self.told.get(name)
        return PODS[name] or (made["extendedResourceClaimStatus"]["resourceClaimName"],)

    def change(self, name, body):
        super().change(name, body)
        self.unseen.append((name, msgspec.convert(copy.deepcopy(self.claims[name]), ResourceClaim)))

    def delete(self, name):
        super().delete(name)
        self.unseen.append((name, None))

    def answer(self, request):
        if "/pods/" in request.path and request.method == "GET":
            name = request.path.rsplit("/", 1)[1]
            spec = {"nodeName": self.bound[name]} if name in self.bound else {}
            return ApiResponse(200, json.dumps({"metadata": {"uid": name}, "spec": spec}).encode())
        return super().answer(request)

    def decide(self, name):
        """The pod gets a node and its claims' devices, and what writes them begins."""
        if name in self.binding or name in self.ready or name in self.bound:
            return
        placement = self.world.schedule(self.pod(name))
        self._begin_later()
        if isinstance(placement, Placement):
            assert self.world.framework.run_reserve(placement.state, self.pod(name), placement.node_name).ok
            ((_, exchange),) = self.world.framework.run_pre_bind(placement.state, self.pod(name), placement.node_name)
            self.binding[name] = placement.node_name, Exchanging(exchange)
            self._settle(name)

    def go_on(self, name, how=0):
        """One step of what the pod waits for: a request is answered, or its answer is lost and it may come later."""
        if name in self.binding:
            self._step(self.binding[name][1], how)
            self._settle(name)

    def give_back_goes_on(self, which, how=0):
        if self.later:
            exchanging = self.later[which % len(self.later)]
            self._step(exchanging, how)
            self.later = [each for each in self.later if each.outcome is None]

    def _step(self, exchanging, how):
        request, answer = exchanging.step, None
        if isinstance(request, ApiCall):
            if how == 1 and request.method != "GET":
                self.on_their_way.append(request)
                self.unheard.append(str(request))
            else:
                answer = self.answer(request)
        elif isinstance(request, float) and request >= LATEST_SECONDS:
            while self.on_their_way:
                self.arrives(0)
            self.show(len(self.unseen))
        exchanging.go_on(answer)
        self._begin_later()

    def _settle(self, name):
        node, exchanging = self.binding[name]
        if exchanging.outcome is not None:
            del self.binding[name]
            if exchanging.is_wanted and exchanging.outcome == "done":
                self.ready[name] = node
            elif exchanging.is_wanted:
                self.unreserve(name)

    def unreserve(self, name):
        self.world.unreserve(self.pod(name))
        self._begin_later()

    def _begin_later(self):
        self.later += map(Exchanging, self.world.later)
        self.world.later.clear()

    def is_given_up(self, name):
        """Nobody wants the pod there any more; a request that is under way is answered yet."""
        if name in self.binding and self.binding[name][1].is_wanted:
            self.binding[name][1].is_wanted = False
            self.unreserve(name)

    def bind(self, name):
        if name in self.ready:
            self.bound[name] = self.ready.pop(name)
            for each in self.claims_of(name):
                stored = self.stored(each).status
                assert any(user.uid == name for user in stored.reserved_for), f"{name} may not use {each}"
                (result,) = stored.allocation.devices.results
                assert result.pool == self.bound[name], f"{name} is not where its devices are"

    def fails_to_bind(self, name):
        if self.ready.pop(name, None) is not None:
            self.unreserve(name)

    def arrives(self, which):
        """A request whose answer was lost is carried out."""
        if self.on_their_way:
            self.answer(self.on_their_way.pop(which % len(self.on_their_way)))

    def show(self, count=1):
        for name, each in self.unseen[:count]:
            if each is None:
                self.world.claims.delete(f"ns/{name}")
            else:
                self.world.claims.set(each)
        del self.unseen[:count]

    def is_killed_in(self, name, which):
        """A scheduler is killed that decided the same claim by what there is now, and whose write is on its way."""
        key = CLAIMS[which % len(CLAIMS)]
        given = [each["status"].get("allocation") for each in self.claims.values()]
        taken = {(each["pool"], each["device"]) for one in given if one for each in one["devices"]["results"]}
        free = [(pool, device) for pool, device in (("n2", "gpu-0"), ("n2", "gpu-1"), ("n1", "gpu-0"))]
        free = [each for each in free if each not in taken]
        if self.stored(key).status.allocation is None and free and key in PODS[name] and name not in self.bound:
            pool, device = free[which % len(free)]
            other = ClaimServer(None, claim(key, devices=[device], node=pool, time=TIME)).claims[key]["status"]
            users = [{"resource": "pods", "name": name, "uid": name}]
            body = {
                "metadata": {"resourceVersion": self.claims[key]["metadata"]["resourceVersion"]},
                "status": {"allocation": other["allocation"], "reservedFor": users},
            }
            self.on_their_way.append(
                ApiCall("PATCH", f"/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/{key}/status", key, body)
            )

    def is_deallocated(self, which):
        """The claim controller takes the devices of a claim that no pod uses."""
        key = sorted(self.claims)[which % len(self.claims)]
        if self.stored(key).status.allocation is not None and not self.stored(key).status.reserved_for:
            self.change(key, {"status": {"allocation": None, "reservedFor": None}})

    def comes_to_rest(self):
        """Everything arrives, is shown and ends."""
        for _ in range(MOST_STEPS):
            self.arrives(0)
            self.show(len(self.unseen))
            for name in PODS:
                self.go_on(name)
                self.bind(name)
            self.give_back_goes_on(0)
            if not (self.on_their_way or self.unseen or self.binding or self.later):
                return
        raise AssertionError("it goes on for ever")


def random_script(dice):
    """Up to eighty things that happen, those that bring a pod on its way most often."""
    names, small, is_lost = sorted(PODS), range(6), (0, 0, 0, 1)
    kinds = {
        "decide": (2, (names,)),
        "go_on": (4, (names, is_lost)),
        "show": (1, (small,)),
        "give_back_goes_on": (2, (small, is_lost)),
        "bind": (1, (names,)),
        "fails_to_bind": (1, (names,)),
        "is_given_up": (1, (names,)),
        "arrives": (1, (small,)),
        "is_deallocated": (1, (small,)),
        "is_killed_in": (1, (names, small)),
    }
    weights = [weight for weight, _ in kinds.values()]
    for kind in dice.choices(list(kinds), weights, k=dice.randrange(80)):
        yield kind, *map(dice.choice, kinds[kind][1])


@settings(max_examples=examples(300))
@given(st.integers(0, 2**32))
def test_at_rest_every_bound_pod_has_its_devices_alone_and_what_counts_as_taken_is_what_claims_say(seed):
    cluster = Cluster()
    for action, *arguments in random_script(random.Random(seed)):
        getattr(cluster, action)(*arguments)
    cluster.comes_to_rest()
    given_to = {}
    for name, node in cluster.bound.items():
        for each in cluster.claims_of(name):
            status = cluster.stored(each).status
            assert any(user.uid == name for user in status.reserved_for or ()), f"{name} may not use {each}"
            (result,) = status.allocation.devices.results
            assert result.pool == node
            given_to.setdefault((result.pool, result.device), set()).add(each)
    assert all(len(claims) == 1 for claims in given_to.values()), given_to
    cache = cluster.world.cache.listers.shared(ClaimCache)
    cache.follow()
    said = AllocatedState()
    for each in map(cluster.stored, cluster.claims):
        said.observe(each.metadata.uid, each.status.allocation)
        assert not is_forgotten(each, cluster), f"{each.metadata.name} is nobody's"
    assert not cache.pending
    pools = [(DRIVER, "n1"), (DRIVER, "n2")]
    assert [holders(cache.state, pool) for pool in pools] == [holders(said, pool) for pool in pools]


def is_forgotten(each, cluster):
    """Whether a claim was made, or has devices, for a pod that runs with another one; it is there until the pod ends.

    One without devices may be left by a request whose answer was lost.
    """
    pod, name = pod_of(each), each.metadata.name
    is_known = each.status.allocation is not None or not any(name in request for request in cluster.unheard)
    return is_known and pod in cluster.bound and name not in cluster.claims_of(pod)


def holders(state, pool):
    return {device: usage.holders for device, usage in state.usage(pool).items()}
