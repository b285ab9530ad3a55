"""What holds of every preemption, whatever the cluster: nobody is evicted in vain, and own arguments are kept."""

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from tests.builders import make_node, make_pod, make_selector
from tests.examples import examples
from tests.plugins.inter_pod_affinity.affinity_scenes import required, term
from tests.plugins.preemption.worlds import NOW, World, make_budget
from tests.plugins.scenes import spread

from bayplan.cache.pod_info import PodInfo
from bayplan.config.bayplan_args import DefaultPreemptionArgs, PDBPolicy
from bayplan.config.load import default_configuration
from bayplan.explain.trace import trace_of
from bayplan.framework.candidate import deciding_criterion, start_time
from bayplan.scheduler.decision import FitError, Placement

HOST = "kubernetes.io/hostname"
NODES = ("n0", "n1", "n2")
STARTS = (None, *(f"2026-01-01T{hour:02}:00:00Z" for hour in (1, 5, 23)))


def configured(**args):
    """The default configuration with other arguments of DefaultPreemption."""
    configuration = default_configuration()
    (profile,) = configuration.profiles
    config = {**profile.plugin_config, "DefaultPreemption": DefaultPreemptionArgs(**args)}
    return replace(configuration, profiles=(replace(profile, plugin_config=config),))


APART = required(term(HOST, make_selector(a="1")))
EVEN = spread(HOST, make_selector(a="1"))
LABELS = st.sampled_from([None, {"a": "1"}, {"a": "1", "b": "1"}, {"b": "1"}])
ANTI = st.sampled_from([None, None, APART])


@st.composite
def placed_pods(draw):
    found, taken = [], set()
    for index in range(draw(st.integers(1, 12))):
        node = draw(st.sampled_from(NODES))
        free = node not in taken and draw(st.booleans())
        if free:
            taken.add(node)
        found.append(
            make_pod(
                f"p{index}",
                uid=f"p{index}",
                node=node,
                cpu=draw(st.sampled_from(["0", "1", "2", "3"])),
                priority=draw(st.sampled_from([-5, 1, 2, 10])),
                start_time=draw(st.sampled_from(STARTS)),
                labels=draw(LABELS),
                host_ports=(80,) if free else (),
                pod_anti_affinity=draw(ANTI),
            )
        )
    return found


PREEMPTORS = st.builds(
    lambda cpu, labels, ports, anti, spread: make_pod(
        "new",
        uid="new",
        cpu=cpu,
        priority=5,
        labels=labels,
        host_ports=ports,
        pod_anti_affinity=anti,
        spread=spread,
    ),
    st.sampled_from(["1", "2", "3", "4"]),
    LABELS,
    st.sampled_from([(), (80,)]),
    ANTI,
    st.sampled_from([(), (), (EVEN,)]),
)
BUDGETS = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from([{"a": "1"}, {"b": "1"}]), st.sampled_from([(), ("p1", "p2")])),
    max_size=3,
).map(
    lambda found: [
        make_budget(f"b{index}", allowed=allowed, disrupted=disrupted, **labels)
        for index, (allowed, labels, disrupted) in enumerate(found)
    ]
)


def nodes():
    return [make_node(name, cpu="4", pods=5, labels={HOST: name}) for name in NODES]


def outcome_of(pods, budgets, pod, **args):
    return World(*nodes(), *pods, *budgets, configuration=configured(**args)).schedule(pod)


def candidates_of(*scene, **args):
    outcome = outcome_of(*scene, **args)
    return {each.node_name: each for each in outcome.post_filter.candidates} if isinstance(outcome, FitError) else {}


def uids(candidates):
    return {name: [victim.uid for victim in each.victims] for name, each in candidates.items()}


def fits(pod, pods, node_name):
    """Whether the pod could be put on that node."""
    decision = World(*nodes(), *pods).decide(pod)
    return isinstance(decision.outcome, Placement) and trace_of(decision)[node_name].rejected_by is None


@settings(max_examples=examples(40))
@given(placed_pods(), BUDGETS, PREEMPTORS)
def test_evicting_the_victims_makes_room_and_evicting_all_but_one_does_not(pods, budgets, pod):
    for name, candidate in candidates_of(pods, budgets, pod).items():
        gone = {victim.uid for victim in candidate.victims}
        left = [each for each in pods if each.metadata.uid not in gone]
        assert fits(pod, left, name)
        for spared in pods:
            if spared.metadata.uid in gone:
                assert not fits(pod, [*left, spared], name), f"{spared.metadata.name} is evicted in vain"


@settings(max_examples=examples(40))
@given(placed_pods(), BUDGETS, PREEMPTORS)
def test_victims_are_pods_of_lower_priority_on_the_one_node_that_no_criterion_speaks_against(pods, budgets, pod):
    outcome = outcome_of(pods, budgets, pod)
    if not isinstance(outcome, FitError) or not outcome.post_filter.nominated_node_name:
        return
    found = outcome.post_filter
    assert {victim.pod.spec.node_name for victim in found.victims} == {found.nominated_node_name}
    assert all(victim.priority < 5 for victim in found.victims)
    (chosen,) = [each for each in found.candidates if each.node_name == found.nominated_node_name]
    for other in found.candidates:
        if other is not chosen:
            assert (*chosen.price, -chosen.latest_start) <= (*other.price, -other.latest_start)
            assert deciding_criterion(chosen, other)


def covering(pod, budgets):
    """The budgets that the eviction of the pod takes from."""
    for budget in budgets:
        wanted = budget.spec.selector.match_labels.items()
        if wanted <= (pod.pod.metadata.labels or {}).items() and pod.name not in budget.status.disrupted_pods:
            yield budget


def overdrawn(victims, budgets):
    """Whether some budget allows fewer disruptions than there are victims it covers."""
    taken = Counter(budget.metadata.name for victim in victims for budget in covering(victim, budgets))
    return any(taken[budget.metadata.name] > budget.status.disruptions_allowed for budget in budgets)


@settings(max_examples=examples(40))
@given(placed_pods(), BUDGETS, PREEMPTORS)
def test_strict_budgets_leave_exactly_the_nodes_on_which_no_budget_is_overdrawn(pods, budgets, pod):
    free, strict = candidates_of(pods, budgets, pod), candidates_of(pods, budgets, pod, pdb_policy=PDBPolicy.STRICT)
    unevictable = {each.spec.node_name for each in pods if len(list(covering(PodInfo(each), budgets))) > 1}
    assert uids({name: each for name, each in strict.items() if name not in unevictable}) == uids(
        {name: each for name, each in free.items() if name not in unevictable and not overdrawn(each.victims, budgets)}
    )
    for each in strict.values():
        assert each.pdb_violations == 0
        assert not overdrawn(each.victims, budgets)
        assert not any(len(list(covering(victim, budgets))) > 1 for victim in each.victims)


@settings(max_examples=examples(30))
@given(placed_pods(), BUDGETS, PREEMPTORS, st.sampled_from([3600, 12 * 3600, 20 * 3600]))
def test_no_victim_is_younger_than_the_minimum_runtime_and_all_others_are_as_before(pods, budgets, pod, seconds):
    # To the preemptor a young pod is as one of its own priority.
    equals = [
        each if NOW - start_time(PodInfo(each)) >= seconds else _with_priority(each, max(5, each.spec.priority))
        for each in pods
    ]
    found = candidates_of(pods, budgets, pod, minimum_runtime_seconds=seconds)
    assert uids(found) == uids(candidates_of(equals, budgets, pod))
    assert all(NOW - start_time(victim) >= seconds for each in found.values() for victim in each.victims)


def _with_priority(pod, priority):
    return structs.replace(pod, spec=structs.replace(pod.spec, priority=priority))
