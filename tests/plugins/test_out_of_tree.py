import itertools
import sys
from dataclasses import replace

import pytest
from tests.builders import make_node, make_pod_info
from tests.plugins.distributions import install

from bayplan.cache.node_table import NodeTable
from bayplan.config.errors import ConfigurationError
from bayplan.config.load import default_configuration
from bayplan.config.plugin_sets import merge_plugins
from bayplan.config.types import OpaqueArgs, PluginEntry, Plugins, PluginSet, SchedulerConfiguration
from bayplan.framework.status import SUCCESS
from bayplan.plugins.out_of_tree import installed_plugins
from bayplan.plugins.registry import build_frameworks
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.simulator import Simulator

HEADER = """
import numpy as np
from bayplan.framework.interface import *
from bayplan.framework.status import *
"""

FILTER = (
    HEADER
    + """
class Odd:
    name = "Odd"
    reads = Reads.NODE
    def __init__(self, args, handle):
        Odd.made_with = args
    def sign_pod(self, pod):
        return ()
    def filter(self, state, pod, nodes, rows):
        return np.array([int(nodes.names[row][-1]) % 2 == 0 for row in rows], dtype=np.int8)
    def reasons(self, state, pod, nodes, rows):
        return [Reason("node(s) were even", np.ones(len(rows), dtype=np.bool_))]
"""
)

SCORE = (
    HEADER
    + """
class Last:
    name = "Last"
    reads = Reads.NODE
    normalize = Normalize.DEFAULT
    def __init__(self, args, handle):
        pass
    def score(self, state, pod, nodes, rows):
        return np.array([int(nodes.names[row][-1]) for row in rows], dtype=np.int64)
"""
)


def configuration(*names: str, args=None, weight: int = 0) -> SchedulerConfiguration:
    default = default_configuration()
    enabled = tuple(PluginEntry(name, weight) for name in names)
    plugins = merge_plugins(default.profiles[0].plugins, Plugins(multi_point=PluginSet(enabled=enabled)))
    config = default.profiles[0].plugin_config | {name: OpaqueArgs(value) for name, value in (args or {}).items()}
    return replace(default, profiles=(replace(default.profiles[0], plugins=plugins, plugin_config=config),))


def problem(*names: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        build_frameworks(configuration(*names), NodeTable())
    return str(caught.value)


def simulate(config: SchedulerConfiguration, pods=("p",), nodes=4) -> dict[str, tuple[str | None, str | None]]:
    ticks = itertools.count()
    simulator = Simulator(config, clock=lambda: float(next(ticks)))
    simulator.add(
        ClusterObjects(
            nodes=[make_node(f"n{number}") for number in range(nodes)],
            pods=[make_pod_info(name, cpu="1") for name in pods],
        )
    )
    return {pod.name: (pod.attempts[-1].node, pod.attempts[-1].message) for pod in simulator.run().pods}


def test_an_enabled_filter_rejects_nodes_with_its_own_reason(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch, FILTER, Odd="outside_module:Odd")
    assert simulate(configuration("Odd"))["p"] == ("n1", None)
    node, message = simulate(configuration("Odd"), nodes=1)["p"]
    assert node is None
    assert message.startswith("0/1 nodes are available: 1 node(s) were even.")


def test_an_enabled_score_is_normalised_and_weighted(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch, SCORE, Last="outside_module:Last")
    assert simulate(configuration())["p"][0] == "n0"
    assert simulate(configuration("Last"))["p"][0] == "n3"


def test_only_plugins_that_the_configuration_names_are_imported(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch, "raise RuntimeError('imported')", Odd="outside_module:Odd")
    assert "Odd" in installed_plugins()
    build_frameworks(configuration(), NodeTable())
    assert "outside_module" not in sys.modules


def test_arguments_reach_the_plugin_as_a_dict_and_none_without(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch, FILTER, Odd="outside_module:Odd")
    given = {"limit": 3, "nested": {"a": [1]}}
    build_frameworks(configuration("Odd", args={"Odd": given}), NodeTable())
    plugin = sys.modules["outside_module"].Odd
    assert plugin.made_with == given
    plugin.made_with["nested"]["a"].append(2)
    assert given["nested"] == {"a": [1]}
    build_frameworks(configuration("Odd"), NodeTable())
    assert plugin.made_with is None


def test_a_factory_function_serves_as_well_as_a_class(tmp_path, monkeypatch):
    source = FILTER + "\ndef make(args, handle):\n    assert handle.nodes is not None\n    return Odd(args, handle)\n"
    install(tmp_path, monkeypatch, source, Odd="outside_module:make")
    assert simulate(configuration("Odd"))["p"][0] == "n1"


def test_an_error_names_distribution_and_entry_point(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch, name="broken", Odd="no_such_module:Odd")
    assert problem("Odd") == (
        'profiles[0].plugins: plugin "Odd": distribution "broken", entry point "Odd = no_such_module:Odd": '
        "import failed: ModuleNotFoundError: No module named 'no_such_module'"
    )


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("Odd = 3", "must be a class or a function, not int"),
        ("raise RuntimeError('no')", "import failed: RuntimeError: no"),
        ("x = 1", "import failed: AttributeError: module 'outside_module' has no attribute 'Odd'"),
        ("def Odd(args): ...", "the factory must take (args, handle), but takes (args)"),
        ("async def Odd(args, handle): ...", "the factory must not be async"),
        ("def Odd(args, handle): raise ValueError('limit?')", "the factory failed: ValueError: limit?"),
        ("def Odd(args, handle): return None", "NoneType has no name"),
        (FILTER.replace('"Odd"', '"Even"'), 'calls itself "Even"'),
        (FILTER.replace("def filter", "def filtered"), "extends no extension point"),
        (FILTER.replace("reads = Reads.NODE", ""), "extends filter but has no reads"),
        (FILTER.replace("reads = Reads.NODE", "traits = 7"), 'traits must be Traits, not "7"'),
        (FILTER.replace("Reads.NODE", "'NODE'"), "reads must be a Reads, not \"'NODE'\""),
        (FILTER.replace("def reasons", "def why"), "reasons(state, pod, nodes, rows) is missing"),
        (
            FILTER.replace("nodes, rows):\n        return np", "node):\n        return np"),
            "filter must take (state, pod, nodes, rows), but takes (state, pod, node)",
        ),
        (FILTER.replace("def filter", "async def filter"), "filter must not be async"),
        (SCORE.replace("Last", "Odd").replace("normalize = Normalize.DEFAULT", ""), "extends score but has no norm"),
        (
            SCORE.replace("Last", "Odd").replace("Normalize.DEFAULT", "Normalize.CUSTOM"),
            "normalize_score(state, pod, nodes, rows, scores) is missing",
        ),
        (FILTER + "    def bind(self, pod, node_name): ...", "extends bind, which is for plugins of bayplan only"),
        (FILTER + "    def sort_key(self, pod, timestamp): ...", "extends queueSort, which is for plugins of bayplan"),
        (FILTER + "    def reserve(self, state, pod, node_name): ...", "unreserve(state, pod, node_name) is missing"),
        (FILTER + "    def events_to_register(self): return [1]", "events_to_register must answer EventRegistrations"),
        (FILTER + "    def events_to_register(self): return 1/0", "events_to_register failed: ZeroDivisionError"),
    ],
)
def test_what_is_wrong_with_a_plugin_is_said_at_the_start(tmp_path, monkeypatch, source, complaint):
    install(tmp_path, monkeypatch, source, Odd="outside_module:Odd")
    text = problem("Odd")
    assert text.startswith('profiles[0].plugins: plugin "Odd": distribution "outside", ')
    assert complaint in text


@pytest.mark.parametrize(("name", "owner"), [("NodeResourcesFit", "bayplan"), ("GangScheduling", "kube-scheduler")])
def test_a_name_that_is_taken_is_refused_though_the_default_set_enables_it(tmp_path, monkeypatch, name, owner):
    install(tmp_path, monkeypatch, FILTER, **{name: "outside_module:Odd"})
    assert f"the name is taken by a plugin of {owner}" in problem(name)


def test_a_name_offered_twice_is_refused_with_both_distributions(tmp_path, monkeypatch):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        install(tmp_path / name, monkeypatch, FILTER, name=name, Odd=f"{name}_module:Odd")
    text = problem("Odd")
    assert "the name is offered more than once" in text
    assert '"first"' in text
    assert '"second"' in text


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("return None", "answered None, not a numpy array"),
        ("return np.zeros(len(rows), dtype=np.int64)", "answered int64 of shape (4,), not int8 of shape (4,)"),
        ("return np.zeros(len(rows) + 1, dtype=np.int8)", "answered int8 of shape (5,), not int8 of shape (4,)"),
        ("return np.full(len(rows), 4, dtype=np.int8)", "answered a code that is none of SUCCESS"),
        ("raise KeyError(pod.name)", "KeyError: 'bad'"),
    ],
)
def test_a_wrong_answer_fails_that_pod_and_names_the_plugin(tmp_path, monkeypatch, answer, told):
    line = "        return np.array"
    source = FILTER.replace(line, f"        if pod.name == 'bad':\n            {answer}\n{line}")
    install(tmp_path, monkeypatch, source, Odd="outside_module:Odd")
    outcomes = simulate(configuration("Odd"), pods=["bad", "good"])
    assert outcomes["good"] == ("n1", None)
    node, message = outcomes["bad"]
    assert node is None
    assert message.startswith('running Filter plugin "Odd": ')
    assert told in message


@pytest.mark.parametrize(
    ("normalize", "score", "told"),
    [
        ("NONE", 101, "answered the score 101, it should be in the range of [0, 100]"),
        ("DEFAULT", -1, "answered the score -1, it should be in the range of [0, 92233720368547758]"),
        ("DEFAULT", 2**62, "answered the score 4611686018427387904, it should be"),
    ],
)
def test_a_score_out_of_range_fails_the_pod(tmp_path, monkeypatch, normalize, score, told):
    source = SCORE.replace("DEFAULT", normalize).replace("int(nodes.names[row][-1])", str(score))
    install(tmp_path, monkeypatch, source, Last="outside_module:Last")
    node, message = simulate(configuration("Last"))["p"]
    assert node is None
    assert message.startswith('running Score plugin "Last": ' + told)


def test_a_custom_normalisation_out_of_range_fails_the_pod(tmp_path, monkeypatch):
    normalize = "    def normalize_score(self, state, pod, nodes, rows, scores): return scores * 50"
    install(tmp_path, monkeypatch, SCORE.replace("DEFAULT", "CUSTOM") + normalize, Last="outside_module:Last")
    assert simulate(configuration("Last"))["p"][1] == (
        'running NormalizeScore plugin "Last": answered the score 150, it should be in the range of [0, 100]'
    )


def test_a_plugin_that_raises_before_the_queue_holds_the_pod_and_says_why(tmp_path, monkeypatch):
    source = FILTER + "    def pre_enqueue(self, pod):\n        raise ValueError('x')\n"
    install(tmp_path, monkeypatch, source, Odd="outside_module:Odd")
    _node, message = simulate(configuration("Odd"), pods=["bad"])["bad"]
    assert message == 'running PreEnqueue plugin "Odd": ValueError: x'


PERMIT = """
    def permit(self, state, pod, node_name):
        return ANSWER
"""


def test_simulate_places_a_pod_that_a_plugin_has_wait(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch, FILTER + PERMIT.replace("ANSWER", "Wait(600)"), Odd="outside_module:Odd")
    assert simulate(configuration("Odd"))["p"] == ("n1", None)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("Wait(-1)", "answered a Wait of -1 seconds, which is no time"),
        ("Wait(float('nan'))", "answered a Wait of nan seconds, which is no time"),
        ("Wait('1m')", "answered a Wait of '1m' seconds, which is no time"),
        ("600", "answered a int, neither a Status nor a Wait"),
    ],
)
def test_a_wait_that_is_no_time_fails_the_pod(tmp_path, monkeypatch, answer, told):
    install(tmp_path, monkeypatch, FILTER + PERMIT.replace("ANSWER", answer), Odd="outside_module:Odd")
    assert simulate(configuration("Odd"))["p"] == (None, f'running Permit plugin "Odd": {told}')


def test_a_plugin_finds_the_pods_that_wait_in_its_handle(tmp_path, monkeypatch):
    source = FILTER.replace("Odd.made_with = args", "self.waiting_pods = handle.waiting_pods")
    allowing = PERMIT.replace("return ANSWER", "return [each.allow('Odd') for each in self.waiting_pods] and SUCCESS")
    install(tmp_path, monkeypatch, source + allowing, Odd="outside_module:Odd")
    (framework,) = build_frameworks(configuration("Odd"), NodeTable()).values()
    heard = []
    framework.waiting_pods.add(make_pod_info(uid="u"), "n1", ["Odd"], heard.append)
    framework.run_permit({}, make_pod_info(), "n1")
    assert (heard, len(framework.waiting_pods)) == ([SUCCESS], 0)


def test_what_is_installed_but_not_named_changes_nothing(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch, FILTER, Odd="outside_module:Odd")
    assert simulate(configuration())["p"] == ("n0", None)
