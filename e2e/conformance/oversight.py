"""What a pass must show besides the verdicts of the specs, which leave some of it unsaid."""

from collections.abc import Iterable

from e2e.controlplane.audit import AuditEvent
from e2e.controlplane.process import Process
from e2e.controlplane.recorder import PodEvent

_CONFLICTING_PODS = ("pod5",)  # the spec on 0.0.0.0 waits until it must have been refused, and then asserts nothing


def problems(events: Iterable[PodEvent], requests: Iterable[AuditEvent], scheduler: Process) -> list[str]:
    """Returns what went wrong that no spec reports.

    Pods on two nodes or on a forbidden one, requests that a role does not allow, a scheduler in trouble.
    """
    return [*bad_bindings(events), *refusals(requests), *_trouble(scheduler)]


def bad_bindings(events: Iterable[PodEvent]) -> list[str]:
    """Returns a line for each pod that was seen on two nodes, or on any though its host port was taken."""
    nodes: dict[tuple[str, str], list[str]] = {}
    for event in events:
        seen = nodes.setdefault((event.key, event.uid), [])
        if event.node and event.node not in seen:
            seen.append(event.node)
    found = [f"{key} was on {' and '.join(seen)}" for (key, _), seen in nodes.items() if len(seen) > 1]
    for (key, _), seen in nodes.items():
        namespace, _, name = key.partition("/")
        if seen and namespace.startswith("sched-pred-") and name in _CONFLICTING_PODS:
            found.append(f"{key} was bound to {seen[0]}, where its host port is taken")
    return found


def refusals(requests: Iterable[AuditEvent]) -> list[str]:
    """Returns a line for each kind of request that no role allows who made it."""
    kinds = {(each.user, each.verb, each.resource) for each in requests if each.forbidden}
    return [f"{user} may not {verb} {resource}" for user, verb, resource in sorted(kinds)]


def _trouble(scheduler: Process) -> list[str]:
    found = []
    if scheduler.exit_code is not None:
        found.append(f"{scheduler.name} exited with {scheduler.exit_code}")
    if "Traceback" in scheduler.log():
        found.append(f"{scheduler.name} logged a traceback: {scheduler.log_path}")
    return found
