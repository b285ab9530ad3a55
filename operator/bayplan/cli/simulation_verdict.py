"""What `--fail-on-unschedulable` asks: whether the pods that a simulation is about all have a node."""

from collections.abc import Sequence

import click
from msgspec import UNSET

from bayplan.cli.simulation_input import Configured
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.comparison import own_pods
from bayplan.simulate.input_files import waiting_pods
from bayplan.simulate.report import Report
from bayplan.simulate.simulator import Simulator

PodKey = tuple[str, str, str]
"""Kind, namespace and name: a workload stands for its pods where these cannot be read."""


def all_fit(each_configured: Sequence[Configured], reports: Sequence[Report], objects: ClusterObjects) -> bool:
    """Whether every pod has a node with every configuration, and as many as asked for were counted.

    Of a cluster that was changed only those count that the change added, evicted or took the room of: what was left
    without a node before is no fault of the change. A line on standard error names pods that nothing was tried for.
    """
    before = objects.before() if objects.before is not None else ClusterObjects()
    added = {_key(info.namespace, info.name) for pods in objects.added for info in pods}
    fit = True
    for configured, report in zip(each_configured, reports, strict=True):
        failing = _without_node(report)
        others = _of_others(objects, configured)
        if failing and before.pods:
            simulator = Simulator(configured.configuration)
            simulator.add(own_pods(before))
            failing -= _without_node(simulator.run()) - added
        for key in _of_others(before, configured).keys() - added:
            others.pop(key, None)
        _tell_of_others(others)
        count = report.count
        enough = count is UNSET or count.asked is None or count.fits >= count.asked
        fit = fit and enough and not failing and not others
    return fit


def _key(namespace: str, name: str) -> PodKey:
    return "Pod", namespace, name


def _without_node(report: Report) -> set[PodKey]:
    """The pods that were tried and got no node, and those that could not be read; gated pods are no fault."""
    tried = report.pods[: len(report.pods) - report.summary.gated]
    lost = {_key(pod.namespace, pod.name) for pod in tried if not any(each.node for each in pod.attempts)}
    return lost | {(each.kind, each.namespace, each.name) for each in report.summary.skipped}


def _of_others(objects: ClusterObjects, configured: Configured) -> dict[PodKey, str]:
    """The pods that wait for a scheduler that is no profile's, with its name."""
    profiles = configured.simulator.frameworks
    named = ((_key(info.namespace, info.name), info.pod.spec.scheduler_name) for info in waiting_pods(objects))
    return {key: name for key, name in named if name not in profiles}


def _tell_of_others(others: dict[PodKey, str]) -> None:
    for name in sorted(set(others.values())):
        (_, *first), *more = (key for key, each in others.items() if each == name)
        pods = f"pod {'/'.join(first)} was" if not more else f"pod {'/'.join(first)} and {len(more)} more were"
        advice = "give --as-scheduler for what --add gives, or --scheduler-name"
        click.echo(f"--fail-on-unschedulable: {pods} not tried: no profile is named {name}; {advice}", err=True)
