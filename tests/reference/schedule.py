"""The whole decision about one pod, node by node, as plainly as it can be said."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.reference import filters, inter_pod_affinity, scores, topology_spread
from tests.reference.filters import UNRESOLVABLE, Host, Verdict

from bayplan.cache.pod_info import PodInfo
from bayplan.config.plugin_args import default_args
from bayplan.config.plugin_sets import expand_plugins
from bayplan.config.types import BalanceMeasure, PluginEntry, Profile
from bayplan.plugins.registry import in_tree_extends

_REVERSED = "TaintToleration"


@dataclass
class Decision:
    """What a cycle must say: verdicts by node, and weighted scores and totals of feasible nodes when two or more."""

    feasible: list[str] = field(default_factory=list)
    rejected_by: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, list[str]] = field(default_factory=dict)
    codes: dict[str, int] = field(default_factory=dict)
    scores: dict[str, dict[str, int]] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)
    plugins: set[str] = field(default_factory=set)
    message: str = ""

    @property
    def winner(self) -> str | None:
        """The first of the best nodes."""
        if not self.totals:
            return self.feasible[0] if self.feasible else None
        return max(self.feasible, key=lambda name: self.totals[name])


def reference_schedule(hosts: Sequence[Host], pod: PodInfo, profile: Profile) -> Decision:
    """Decide for `pod` over `hosts`, which are in the order in which ties are broken."""
    decision = Decision()
    points = expand_plugins(profile.plugins, in_tree_extends, scheduler_name=profile.scheduler_name)
    pinned = _pinned(pod) if "NodeAffinity" in [entry.name for entry in points["pre_filter"]] else None
    if pinned is not None and not pinned:
        reason = "pod affinity terms conflict"
        for host in hosts:
            _reject(decision, host, "NodeAffinity", (UNRESOLVABLE, [reason]))
        decision.plugins = {"NodeAffinity"}
        decision.message = f"0/{len(hosts)} nodes are available: {reason}.{_left_over(points)}"
    else:
        for host in hosts:
            if pinned is not None and host.name not in pinned:
                reason = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
                _reject(decision, host, "NodeAffinity", (UNRESOLVABLE, [reason]))
            else:
                _filter(decision, host, hosts, pod=pod, profile=profile, order=points["filter"])
        decision.message = _message(decision, len(hosts))
    if not hosts:
        decision.message = "no nodes available to schedule pods"
    if len(decision.feasible) > 1:
        _score(decision, hosts, pod, profile, points["score"])
    return decision


def _filter(
    decision: Decision,
    host: Host,
    hosts: Sequence[Host],
    *,
    pod: PodInfo,
    profile: Profile,
    order: Sequence[PluginEntry],
) -> None:
    for entry in order:
        verdict = _verdict(entry.name, pod, host, hosts, profile)
        if verdict is not None:
            _reject(decision, host, entry.name, verdict)
            return
    decision.feasible.append(host.name)


def _reject(decision: Decision, host: Host, plugin: str, verdict: tuple[int, list[str]]) -> None:
    decision.codes[host.name], decision.reasons[host.name] = verdict
    decision.rejected_by[host.name] = plugin
    decision.plugins.add(plugin)


def _verdict(plugin: str, pod: PodInfo, host: Host, hosts: Sequence[Host], profile: Profile) -> Verdict:
    args = profile.plugin_config.get(plugin)
    return {
        "NodeUnschedulable": lambda: filters.node_unschedulable(pod, host),
        "NodeName": lambda: filters.node_name(pod, host),
        "TaintToleration": lambda: filters.taint_toleration(pod, host),
        "NodeAffinity": lambda: filters.node_affinity(pod, host, args),
        "NodePorts": lambda: filters.node_ports(pod, host),
        "NodeResourcesFit": lambda: filters.node_resources_fit(pod, host, args),
        "InterPodAffinity": lambda: inter_pod_affinity.verdict(pod, host, hosts, {}),
        "PodTopologySpread": lambda: topology_spread.verdict(pod, host, hosts),
        # The generated pods give other plugins no cause to speak.
    }.get(plugin, lambda: None)()


def _score(
    decision: Decision, hosts: Sequence[Host], pod: PodInfo, profile: Profile, order: Sequence[PluginEntry]
) -> None:
    feasible = [host for host in hosts if host.name in decision.feasible]
    decision.totals = dict.fromkeys(decision.feasible, 0)
    for entry in order:
        raw = _raw_scores(entry.name, pod, feasible, hosts, profile)
        if raw is None:
            continue
        if entry.name in ("TaintToleration", "NodeAffinity"):
            raw = scores.default_normalize(raw, reverse=entry.name == _REVERSED)
        elif entry.name == "InterPodAffinity":
            raw = inter_pod_affinity.normalized(raw)
        weighted = {host.name: score * entry.weight for host, score in zip(feasible, raw, strict=True)}
        decision.scores[entry.name] = weighted
        for name, score in weighted.items():
            decision.totals[name] += score


def _raw_scores(
    plugin: str, pod: PodInfo, feasible: Sequence[Host], hosts: Sequence[Host], profile: Profile
) -> list[int] | None:
    """One score per feasible node; None for a plugin that has nothing to say about the pod."""
    args = profile.plugin_config.get(plugin)
    if plugin == "NodeAffinity" and not scores.preferred_terms(pod, args):
        return None
    if plugin == "NodeResourcesBalancedAllocation":
        if args.measure is BalanceMeasure.RESULT:
            return [scores.resulting_balance(pod, host, args) for host in feasible]
        if not any(pod.requests.amounts.get(resource.name) for resource in args.resources):
            return None
    if plugin == "PodTopologySpread":
        return topology_spread.scores(pod, feasible, hosts)
    if plugin == "InterPodAffinity":
        weight = (args or default_args(plugin)).hard_pod_affinity_weight
        return inter_pod_affinity.raw_scores(pod, feasible, hosts, {}, hard_weight=weight)
    score = {
        "TaintToleration": lambda host: scores.taint_toleration(pod, host),
        "NodeAffinity": lambda host: scores.node_affinity(pod, host, args),
        "NodeResourcesFit": lambda host: scores.node_resources_fit(pod, host, args),
        "NodeResourcesBalancedAllocation": lambda host: scores.balanced_allocation(pod, host, args),
        "ImageLocality": lambda host: scores.image_locality(pod, host, hosts),
        # The pods here have no claims.
        "DynamicResources": lambda host: 0,
        "VolumeBinding": lambda host: 0,
    }.get(plugin)
    return None if score is None else [score(host) for host in feasible]


def _message(decision: Decision, count: int) -> str:
    counts: dict[str, int] = {}
    for reasons in decision.reasons.values():
        for reason in reasons:
            counts[reason] = counts.get(reason, 0) + 1
    return f"0/{count} nodes are available: {', '.join(sorted(f'{n} {reason}' for reason, n in counts.items()))}."


def _left_over(points: Mapping[str, Sequence[PluginEntry]]) -> str:
    """What DynamicResources says after NodeAffinity's PreFilter kept its own from being run."""
    order = [entry.name for entry in points["pre_filter"]]
    if "DynamicResources" not in [entry.name for entry in points["post_filter"]]:
        return ""
    return "" if "DynamicResources" in order[: order.index("NodeAffinity")] else " not found"


def _pinned(pod: PodInfo) -> set[str] | None:
    """The nodes the pod names in every one of its terms, or None."""
    names: set[str] = set()
    terms = filters.required_terms(pod.pod)
    for term in terms or []:
        wanted = [set(each.values or []) for each in term.match_fields or [] if each.operator == "In"]
        if not wanted:
            return None
        names |= set.intersection(*wanted)
    return names if terms else None
