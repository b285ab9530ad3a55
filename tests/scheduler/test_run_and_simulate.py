"""`run` and `simulate` make the same of every pod, whatever a plugin does at whichever extension point."""

import asyncio
from dataclasses import replace
from textwrap import indent
from types import SimpleNamespace

import msgspec
import pytest
from tests.builders import make_node, make_pod
from tests.plugins.distributions import install
from tests.scheduler.preemption.scene import Api
from tests.scheduler.scene import Scene

from bayplan.cache.pod_info import PodInfo
from bayplan.config.load import default_configuration
from bayplan.config.plugin_sets import merge_plugins
from bayplan.config.types import PluginEntry, Plugins, PluginSet
from bayplan.scheduler.dispatcher import Dispatcher
from bayplan.simulate.cluster import ClusterObjects
from bayplan.simulate.simulator import Simulator

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

NODES = [make_node("n1", cpu="4"), make_node("n2", cpu="3"), make_node("n3", cpu="2")]
RUNNING = [make_pod("low", uid="low", node="n1", cpu="4", priority=0)]


def waiting():
    """A pod that plugins reject, one that preempts, one nominated already, and others around them."""
    return [
        make_pod("first", uid="first", cpu="1", priority=9),
        make_pod("bad", uid="bad", cpu="1", priority=8),
        make_pod("lower", uid="lower", cpu="3", priority=1, nominated="n1"),
        make_pod("preemptor", uid="preemptor", cpu="4", priority=7),
        make_pod("never", uid="never", cpu="5", priority=5, nominated="n2"),
        make_pod("last", uid="last", cpu="1", priority=0),
    ]


def configuration():
    default = default_configuration()
    profile = default.profiles[0]
    given = PluginSet(enabled=(PluginEntry("Picky", 1),))
    plugins = merge_plugins(profile.plugins, Plugins(multi_point=given))
    return replace(default, profiles=(replace(profile, plugins=plugins),))


async def attempts_of_run(config, prepare):
    """(pod, node, message, nomination) of each attempt of the loop; the API server does at once what it is told."""
    api = Api()
    scene = Scene(Dispatcher(api, api), config)
    scene.dispatcher.start()
    prepare(scene.framework)
    objects = {pod.metadata.uid: pod for pod in (*RUNNING, *waiting())}
    for node in NODES:
        scene.nodes.on_add(node)
    for pod in RUNNING:
        scene.assigned.on_add(pod)
    for pod in waiting():
        scene.pending.changed(pod)
    made = []
    while (attempt := scene.scheduler.schedule_one()) is not None:
        uid = attempt.pod.uid
        nomination = scene.queue.nominator.nominated_node(uid)
        for _ in range(50):
            await asyncio.sleep(0)
        messages = [text for said, reason, text in scene.said() if (said, reason) == (uid, "FailedScheduling")]
        made.append((uid, scene.cache.node_of(uid), next(iter(messages), None), nomination))
        for bound, node_name in scene.binder.bindings:
            pod = objects[bound]
            scene.assigned.on_add(
                msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node_name))
            )
        for kind, name in api.order():
            if kind == "DELETE":
                scene.assigned.on_delete(objects[name])
        scene.binder.bindings.clear()
        api.calls.clear()
        scene.check()
    return made, {uid: scene.queue.get(uid).gating_message for uid in scene.queue.uids()}


def attempts_of_simulation(config, prepare):
    simulator = Simulator(config)
    prepare(simulator.frameworks["bayplan"])
    pods = [PodInfo(pod) for pod in (*RUNNING, *waiting())]
    simulator.add(ClusterObjects(nodes=NODES, pods=pods))
    made = []
    while (decision := simulator.step()) is not None:
        attempt = decision.attempt()
        nomination = simulator.queue.nominator.nominated_node(decision.pod.uid)
        made.append((decision.pod.uid, attempt.node, attempt.message, nomination))
    return made, {uid: simulator.queue.get(uid).gating_message for uid in simulator.queue.uids()}


def untouched(framework):
    """The plugins as they are configured."""


def refuse_to_bind(framework):
    """Plugins from outside have no PreBind, so one is put in."""

    def pre_bind(state, pod, node_name):
        if pod.name == "bad":
            raise ValueError("no effects")
        return ()

    framework.pre_binds = [*framework.pre_binds, SimpleNamespace(name="Picky", pre_bind=pre_bind)]


@pytest.mark.parametrize("point", [*REJECTIONS, "pre_bind"])
async def test_run_and_simulate_place_nominate_and_reject_alike(tmp_path, monkeypatch, point):
    prepare = refuse_to_bind if point == "pre_bind" else untouched
    method = REJECTIONS.get(point, "") or "def post_bind(self, pod, node_name): pass"
    install(tmp_path, monkeypatch, PLUGIN + indent(method, "    "), Picky="outside_module:Picky")
    config = configuration()
    run, simulated = await attempts_of_run(config, prepare), attempts_of_simulation(config, prepare)
    assert run == simulated
    placed = {uid: node for uid, node, _, _ in run[0] if node}
    assert "first" in placed
    assert ("bad" in placed) == (point == "none" or point.startswith("post_filter"))
