"""`run` and `simulate` make the same of every pod: of generated clusters, and whatever a plugin does anywhere.

Both read the same objects, each in its own way: `run` from an API server by its list and its watches, `simulate` from a
file. The API server does at once what it is told, and no time passes for the queue.
"""

import asyncio
import json
import random
from dataclasses import replace
from textwrap import indent
from types import SimpleNamespace

import pytest
from aiohttp import web
from tests.controller.kubernetes_api import NODES, PODS, KubernetesApi
from tests.faults.faults import status_body, status_response
from tests.plugins.distributions import install
from tests.waiting import until

from bayplan.api.credentials import Credentials
from bayplan.api.workload_objects import PodDisruptionBudget
from bayplan.config.load import default_configuration, load_configuration
from bayplan.config.plugin_sets import merge_plugins
from bayplan.config.types import PluginEntry, Plugins, PluginSet
from bayplan.controller import build
from bayplan.scheduler.attempt import Failed, Nominated, Reserved
from bayplan.simulate import simulator
from bayplan.simulate.cluster import read_cluster

BUDGETS = "/apis/policy/v1/poddisruptionbudgets"
KINDS = {NODES: ("v1", "Node"), PODS: ("v1", "Pod"), BUDGETS: ("policy/v1", "PodDisruptionBudget")}
MOST_ATTEMPTS = 150

PLUGIN = """
import numpy as np
from bayplan.framework.interface import *
from bayplan.framework.status import *
from bayplan.framework.traits import *

NO = Status(Code.UNSCHEDULABLE, ("not this one",))
ERROR = Status(Code.ERROR, ("broken",))

def verdict(pod, status=NO):
    return status if pod.name == "bad" else SUCCESS

class Picky:
    name = "Picky"
    traits = Traits(reads=Reads.NODE)

    def __init__(self, args, handle):
        pass

    def sign_pod(self, pod):
        return pod.name == "bad"

    def unreserve(self, state, pod, node_name):
        pass
"""

REJECTIONS = {
    "none": "",
    "pre_enqueue": "def pre_enqueue(self, pod): return verdict(pod)",
    "pre_filter": "def pre_filter(self, state, pod, nodes): return PreFilterResult(verdict(pod))",
    "pre_filter error": "def pre_filter(self, state, pod, nodes): return PreFilterResult(verdict(pod, ERROR))",
    "filter": """
def filter(self, state, pod, nodes, rows):
    return np.full(len(rows), verdict(pod).code, dtype=np.int8)
def reasons(self, state, pod, nodes, rows):
    return [Reason("node(s) were not for this one", np.ones(len(rows), dtype=np.bool_))]
""",
    "post_filter": """
def post_filter(self, state, pod, nodes, rejections):
    return PostFilterResult(Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("no room is made",)), "")
""",
    "post_filter leaves the nomination": """
def post_filter(self, state, pod, nodes, rejections):
    return PostFilterResult(Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("no room is made",)), None)
""",
    "post_filter nominates": """
def post_filter(self, state, pod, nodes, rejections):
    return PostFilterResult(SUCCESS, "n1")
""",
    "pre_score": "def pre_score(self, state, pod, nodes, feasible): return verdict(pod, ERROR)",
    "score": """
def score(self, state, pod, nodes, rows):
    if pod.name == "bad":
        raise ValueError("no score")
    return np.zeros(len(rows), dtype=np.int64)
""",
    "reserve": "def reserve(self, state, pod, node_name): return verdict(pod)",
    "reserve error": "def reserve(self, state, pod, node_name): return verdict(pod, ERROR)",
    "permit": "def permit(self, state, pod, node_name): return verdict(pod)",
    "permit raises": "def permit(self, state, pod, node_name): return 1 / (pod.name != 'bad') and SUCCESS",
}


class Api(KubernetesApi):
    """An API server with budgets: an eviction is refused where one allows none, and each end of a pod counts."""

    def fill(self, objects):
        collections = {kind: collection for collection, (_, kind) in KINDS.items()}
        for obj in objects:
            self.put(collections[obj["kind"]], obj)

    def file(self, path):
        """What `kubectl get -o json` gives."""
        items = [
            {"apiVersion": version, "kind": kind, **self.objects[collection][key]}
            for collection, (version, kind) in KINDS.items()
            for key in sorted(self.objects.get(collection, ()))
        ]
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        return str(path)

    def pods(self):
        return {pod["metadata"]["uid"]: pod for pod in self.objects[PODS].values()}

    def allowed(self):
        budgets = self.objects.get(BUDGETS, {})
        return {key: budget["status"]["disruptionsAllowed"] for key, budget in budgets.items()}

    def _covering(self, pod):
        for budget in list(self.objects.get(BUDGETS, {}).values()):
            if budget["spec"]["selector"]["matchLabels"].items() <= pod["metadata"].get("labels", {}).items():
                yield budget

    def _remove(self, target, obj, body):
        for budget in self._covering(obj):
            left = max(budget["status"]["disruptionsAllowed"] - 1, 0)
            self.put(BUDGETS, {**budget, "status": {**budget["status"], "disruptionsAllowed": left}})
        return super()._remove(target, obj, body)

    def _bind(self, target, obj, body):
        if target.subresource != "eviction":
            return super()._bind(target, obj, body)
        if not all(budget["status"]["disruptionsAllowed"] for budget in self._covering(obj)):
            return status_response(429, "TooManyRequests", "it would violate the pod's disruption budget")
        self._remove(target, obj, body)
        return web.json_response(status_body(201), status=201)

    def _patch(self, target, obj, body):
        status = {**obj["status"], **body["status"]}
        status = {key: value for key, value in status.items() if value is not None}
        # As in an API server, what changes nothing makes no version.
        return web.json_response(obj if status == obj["status"] else self.put(PODS, {**obj, "status": status}))


class Run:
    """The parts of `bayplan run`, of which the test calls one attempt after the other."""

    def __init__(self, api, configuration):
        self.api = api
        self.parts = build.build(configuration, Credentials(server=api.url))
        scheduler = self.parts.scheduler
        self.cache, self.queue, self.dispatcher = scheduler.cache, scheduler.queue, scheduler.dispatcher
        self.messages = {}

    async def attempts(self):
        """(uid, node, message, nomination) of each attempt, and why pods are gated in the end."""
        self.dispatcher.start()
        watches = [asyncio.create_task(work) for work in self.parts.watches.work().values()]
        try:
            await until(lambda: self.parts.watches.synced)
            assert await self.parts.intake_list.fill()
            made = []
            while (attempt := self.parts.scheduler.schedule_one()) is not None:
                assert len(made) < MOST_ATTEMPTS, "run does not end"
                made.append(await self._follow(attempt))
            return made, {uid: self.queue.get(uid).gating_message for uid in self.queue.uids()}
        finally:
            for watch in watches:
                watch.cancel()
            await asyncio.gather(*watches, return_exceptions=True)
            await self.dispatcher.drain(binds_seconds=1, calls_seconds=1)
            for client in self.parts.clients:
                await client.close()

    async def _follow(self, attempt):
        uid, node, message = attempt.pod.uid, None, None
        if isinstance(attempt, Reserved):
            node = attempt.placement.node_name
        elif isinstance(attempt, Nominated | Failed):
            message = attempt.message if isinstance(attempt, Failed) else attempt.fit_error.message
            self.messages[uid] = message
        await until(self._settled)
        return uid, node, message, self.queue.nominator.nominated_node(uid)

    def _settled(self):
        """Whether everything was written that follows from the attempts, and everything was heard of."""
        pods = self.api.pods()
        bound = {uid: pod["spec"]["nodeName"] for uid, pod in pods.items() if pod["spec"].get("nodeName")}
        listed = self.cache.listers.of(PodDisruptionBudget).objects
        return (
            not self.dispatcher.jobs_in_flight
            and not list(self.cache.assumed_pods())
            and all(self.cache.node_of(uid) == node_name for uid, node_name in bound.items())
            and self.cache.sizes().pods == len(bound)
            and {key: budget.status.disruptions_allowed for key, budget in listed.items()} == self.api.allowed()
            and all(self._is_current(self.queue.get(uid), pods[uid]) for uid in self.queue.uids())
        )

    def _is_current(self, queued, pod):
        uid, status = queued.uid, pod["status"]
        said = {each["message"] for each in status.get("conditions", ())}
        return (
            queued.sub_queue is not None
            and queued.pod_info.pod.metadata.resource_version == pod["metadata"]["resourceVersion"]
            and status.get("nominatedNodeName") == self.queue.nominator.nominated_node(uid)
            and (uid not in self.messages or self.messages[uid] in said)
        )


def attempts_of_simulation(file, configuration):
    """As `Run.attempts`."""
    simulation = simulator.Simulator(configuration)
    simulation.add(read_cluster([file]))
    made = []
    while (decision := simulation.step()) is not None:
        assert len(made) < MOST_ATTEMPTS, "simulate does not end"
        attempt, uid = decision.attempt(), decision.pod.uid
        made.append((uid, attempt.node, attempt.message, simulation.queue.nominator.nominated_node(uid)))
    return made, {uid: simulation.queue.get(uid).gating_message for uid in simulation.queue.uids()}


@pytest.fixture
def both(tmp_path, monkeypatch):
    """Runs and simulates the same cluster, and gives what each made of it."""
    monkeypatch.setattr(build, "time", SimpleNamespace(monotonic=lambda: 1000.0))

    async def make(objects, configuration):
        async with Api() as api:
            api.fill(objects)
            file = api.file(tmp_path / "cluster.json")
            run = await Run(api, configuration).attempts()
        return run, attempts_of_simulation(file, configuration)

    return make


def node(name, cpu="4", **labels):
    labels = {"kubernetes.io/hostname": name, **labels}
    allocatable = {"cpu": cpu, "memory": "8Gi", "pods": "20"}
    return {"kind": "Node", "metadata": {"name": name, "labels": labels}, "status": {"allocatable": allocatable}}


def pod(name, cpu="1", *, labels=None, nominated="", created=1, scheduler="bayplan", **spec):
    metadata = {"name": name, "namespace": "default", "uid": name, "labels": labels or {}}
    metadata["creationTimestamp"] = f"2026-01-01T00:00:{created:02}Z"
    status = {"phase": "Running" if "nodeName" in spec else "Pending"}
    if nominated:
        status["nominatedNodeName"] = nominated
    if "nodeName" in spec:
        status["startTime"] = f"2026-01-01T00:01:{created:02}Z"
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
    spec = {"schedulerName": scheduler, "containers": containers, **spec}
    return {"kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


# Generated clusters.

PROFILES = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: bayplan
- schedulerName: strict
  pluginConfig:
  - name: DefaultPreemption
    args: {bayplan.io: {pdbPolicy: Strict}}
"""


def generated(rng):
    """A few nodes, pods on them, pods that wait, some of them nominated, and budgets."""
    names = [f"n{number}" for number in range(rng.randint(1, 5))]
    objects = [node(name, str(rng.randint(1, 4)), zone=rng.choice("ab")) for name in names]
    objects += [_pod(rng, f"r{number}", nodeName=rng.choice(names)) for number in range(rng.randint(0, 8))]
    for number in range(rng.randint(1, 8)):
        # A node that is gone may still be named.
        nominated = rng.choice([*names, "gone"]) if rng.random() < 0.4 else ""
        objects.append(_pod(rng, f"p{number}", nominated=nominated))
    for app in "xy":
        if rng.random() < 0.5:
            selector = {"matchLabels": {"app": app}}
            metadata = {"name": app, "namespace": "default"}
            allowed = {"disruptionsAllowed": rng.choice([0, 1, 2])}
            objects.append(
                {"kind": "PodDisruptionBudget", "metadata": metadata, "spec": {"selector": selector}, "status": allowed}
            )
    return objects


def _pod(rng, name, **fields):
    if rng.random() < 0.3:
        term = {"topologyKey": rng.choice(["zone", "kubernetes.io/hostname"])}
        term["labelSelector"] = {"matchLabels": {"app": rng.choice("xy")}}
        kind = rng.choice(["podAffinity", "podAntiAffinity"])
        fields["affinity"] = {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    if rng.random() < 0.1:
        fields["preemptionPolicy"] = "Never"
    return pod(
        name,
        str(rng.randint(0, 3)),
        labels={"app": rng.choice("xyz")},
        created=rng.randint(1, 3),
        scheduler=rng.choice(["bayplan", "bayplan", "strict", "theirs"]),
        priority=rng.choice([0, 0, 5, 5, 10]),
        **fields,
    )


@pytest.mark.parametrize("seed", range(40))
async def test_run_and_simulate_make_the_same_of_a_cluster(both, tmp_path, seed):
    config = tmp_path / "config.yaml"
    config.write_text(PROFILES)
    run, simulated = await both(generated(random.Random(seed)), load_configuration(config))
    assert run == simulated


# A plugin from outside that rejects one pod at each extension point.

CLUSTER = [
    *(node(name, cpu) for name, cpu in (("n1", "4"), ("n2", "3"), ("n3", "2"))),
    pod("low", "4", nodeName="n1", priority=0),
    # A pod that plugins reject, one that preempts, one nominated already, and others around them.
    pod("first", priority=9),
    pod("bad", priority=8),
    pod("lower", "3", priority=1, nominated="n1"),
    pod("preemptor", "4", priority=7),
    pod("never", "5", priority=5, nominated="n2"),
    pod("last", priority=0),
]


def configuration():
    default = default_configuration()
    profile = default.profiles[0]
    given = PluginSet(enabled=(PluginEntry("Picky", 1),))
    plugins = merge_plugins(profile.plugins, Plugins(multi_point=given))
    return replace(default, profiles=(replace(profile, plugins=plugins),))


def refuse_to_bind(monkeypatch):
    """Plugins from outside have no PreBind, so one is put in."""

    def pre_bind(state, pod, node_name):
        if pod.name == "bad":
            raise ValueError("no effects")
        return ()

    for module in (build, simulator):

        def build_frameworks(*args, made=module.build_frameworks):
            frameworks = made(*args)
            for framework in frameworks.values():
                framework.pre_binds = [*framework.pre_binds, SimpleNamespace(name="Picky", pre_bind=pre_bind)]
            return frameworks

        monkeypatch.setattr(module, "build_frameworks", build_frameworks)


@pytest.mark.parametrize("point", [*REJECTIONS, "pre_bind"])
async def test_run_and_simulate_place_nominate_and_reject_alike(both, tmp_path, monkeypatch, point):
    if point == "pre_bind":
        refuse_to_bind(monkeypatch)
    method = REJECTIONS.get(point, "") or "def post_bind(self, pod, node_name): pass"
    install(tmp_path, monkeypatch, PLUGIN + indent(method, "    "), Picky="outside_module:Picky")
    run, simulated = await both(CLUSTER, configuration())
    assert run == simulated
    placed = {uid: node_name for uid, node_name, _, _ in run[0] if node_name}
    assert "first" in placed
    assert ("bad" in placed) == (point == "none" or point.startswith("post_filter"))
