"""`run` and `simulate` make the same of every pod: of generated clusters, and whatever a plugin does anywhere.

Both read the same objects, each in its own way: `run` from an API server by its list and its watches, `simulate` from a
file. The API server does at once what it is told, and no time passes for the queue.
"""

import random
from dataclasses import replace
from textwrap import indent
from types import SimpleNamespace

import pytest
from tests.plugins.distributions import install
from tests.scheduler.both_ways import Api, Run, attempts_of_simulation, node, pod

from bayplan.config.load import default_configuration, load_configuration
from bayplan.config.plugin_sets import merge_plugins
from bayplan.config.types import PluginEntry, Plugins, PluginSet
from bayplan.controller import build
from bayplan.framework.status import Traits
from bayplan.scheduler import engines
from bayplan.simulate import simulator

PLUGIN = """
import numpy as np
from bayplan.framework.interface import *
from bayplan.framework.status import *
from bayplan.framework.status import *

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
    objects += [
        _pod(rng, f"r{number}", priority=rng.choice([0, 0, 5]), nodeName=rng.choice(names))
        for number in range(rng.randint(0, 8))
    ]
    for number in range(rng.randint(1, 8)):
        # A node that is gone may still be named.
        nominated = rng.choice([*names, "gone"]) if rng.random() < 0.4 else ""
        objects.append(_pod(rng, f"p{number}", priority=rng.choice([0, 5, 10, 10]), nominated=nominated))
    for app in "xy":
        if rng.random() < 0.7:
            selector = {"matchLabels": {"app": app}}
            metadata = {"name": app, "namespace": "default"}
            allowed = {"disruptionsAllowed": rng.choice([0, 1, 1, 2])}
            objects.append(
                {"kind": "PodDisruptionBudget", "metadata": metadata, "spec": {"selector": selector}, "status": allowed}
            )
    return objects


def _pod(rng, name, **fields):
    if rng.random() < 0.2:
        term = {"topologyKey": rng.choice(["zone", "kubernetes.io/hostname"])}
        term["labelSelector"] = {"matchLabels": {"app": rng.choice("xy")}}
        kind = rng.choice(["podAffinity", "podAntiAffinity"])
        fields["affinity"] = {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    if rng.random() < 0.1:
        fields["preemptionPolicy"] = "Never"
    return pod(
        name,
        str(rng.randint(1, 3)),
        labels={"app": rng.choice("xxyz")},
        created=rng.randint(1, 3),
        scheduler=rng.choice(["bayplan", "strict", "strict", "theirs"]),
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

    for module in (engines, simulator):

        def build_frameworks(*args, made=module.build_frameworks, **kwargs):
            frameworks = made(*args, **kwargs)
            for framework in frameworks.values():
                framework.pre_binds = [
                    *framework.pre_binds,
                    SimpleNamespace(name="Picky", traits=Traits(), pre_bind=pre_bind),
                ]
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
