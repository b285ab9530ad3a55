"""`python -m e2e.bench.failover`: how long nothing is bound when the leader ends, beside kube-scheduler in one run.

Two instances of a scheduler share a lease with kube-scheduler's default durations. While the leader binds 1,000 pods it
gets a signal: TERM, KILL, or STOP and, once the other has taken over, CONT. The time is from the signal to the first
bind of the other, by the API server's audit log. So is what the old leader wrote later than ten seconds after its last
renewal, which for bayplan has to be nothing.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from e2e.bench import environment
from e2e.bench.cluster import BenchCluster
from e2e.bench.workload import scheduler_configuration
from e2e.controlplane.audit import AuditTail
from e2e.controlplane.installation import NAMESPACE, install_bayplan
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from e2e.controlplane.replicas import (
    Replica,
    StartReplica,
    bayplan_replica,
    holder_of,
    install_kube_scheduler,
    kube_scheduler_replica,
)
from e2e.controlplane.waiting import wait_until

SIGNALS = ("TERM", "KILL", "STOP")
RENEW_DEADLINE = 10.0
_CONTESTANTS: dict[str, tuple[StartReplica, str]] = {
    "kube-scheduler": (kube_scheduler_replica, "kube-scheduler"),
    "bayplan": (bayplan_replica, "bayplan"),
}
_BOUND_BEFORE = 50
_LIMIT_SECONDS = 90.0


@dataclass(frozen=True, slots=True)
class Takeover:
    """One signal and what followed; `seconds` is from the signal to the next bind of the other instance."""

    contestant: str
    round: int
    signal: str
    seconds: float
    bound_before: int
    exit_code: int
    late_writes: int
    overlapping_writes: int
    """What the old leader wrote after the other had the lease."""


class Pair:
    """The two instances of one contestant; whichever ended is replaced by a new one."""

    def __init__(self, plane: ControlPlane, name: str, directory: Path) -> None:
        self.name = name
        self._plane, self._directory = plane, directory
        self._start, self._lease = _CONTESTANTS[name]
        self._started = 0
        self.leader = self._new()
        wait_until(lambda: holder_of(plane, self._lease), f"{name} leading", timeout_seconds=_LIMIT_SECONDS)
        self.standby = self._new()

    def _new(self) -> Replica:
        self._started += 1
        election = {"leaderElect": True, "resourceName": self._lease, "resourceNamespace": NAMESPACE}
        settings: dict[str, Any] = {**scheduler_configuration(None), "leaderElection": election}
        replica = self._start(self._plane, self._directory / f"{self.name}-{self._started}", settings)
        replica.process.wait_ready()
        return replica

    def succeed(self) -> None:
        """Makes the standby the leader that it is, and starts another standby."""
        self.leader, self.standby = self.standby, self._new()
        time.sleep(5.0)  # It has seen the lease by then, however long it pauses.

    def stop(self) -> None:
        for replica in (self.standby, self.leader):
            replica.process.resume()
            replica.process.stop(20.0)


def take_over(cluster: BenchCluster, pair: Pair, number: int, signal: str, pods: int) -> Takeover:
    """Signals the leader while it binds pods, and waits until all of them are bound."""
    tail = cluster.plane.audit_tail()

    def wait(condition: Callable[[AuditTail], object], what: str) -> None:
        def true() -> object:
            tail.poll()
            return condition(tail)

        wait_until(true, f"{pair.name}: {what}", timeout_seconds=_LIMIT_SECONDS)

    leader, standby = pair.leader, pair.standby
    # All pods may be bound within the time between two renewals.
    wait(lambda tail: leader.renewals(tail.events), "a renewal")
    namespace = cluster.new_namespace()
    load, _ = cluster.start_load(cluster.plane.directory, namespace=namespace, first=0, count=pods)
    wait(lambda tail: len(leader.binds(tail.events)) >= _BOUND_BEFORE, "the first binds")
    at = time.time()
    {"TERM": leader.process.terminate, "KILL": leader.process.kill, "STOP": leader.process.suspend}[signal]()
    wait(lambda tail: standby.binds(tail.events), "the next bind")
    if signal == "STOP":
        leader.process.resume()
    exit_code = leader.process.wait(30.0)
    load.wait(60.0)
    # A bind that was under way when its sender was killed is not answered, and may have happened.
    wait_until(
        lambda: not cluster.unbound(namespace),
        f"{pair.name}: all binds",
        timeout_seconds=_LIMIT_SECONDS,
        detail=lambda: f"{cluster.unbound(namespace)[:3]}\n{standby.process.log_tail()}",
    )
    time.sleep(1.0)
    events = tail.poll()
    took = min(event.received for event in standby.renewals(events))
    seconds = min(event.answered for event in standby.binds(events)) - at
    late = leader.late_writes(events, RENEW_DEADLINE)
    overlapping = [event for event in leader.writes(events) if event.received >= took]
    before = len(leader.binds(events))
    cluster.clear(namespace)
    return Takeover(pair.name, number, signal, seconds, before, exit_code, len(late), len(overlapping))


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the rounds and prints a table; 1 if an old leader of bayplan wrote after its deadline."""
    options = _options(arguments)
    found: list[Takeover] = []
    with ControlPlane.start(ControlPlaneOptions(bench=True, audit=True)) as plane:
        install_bayplan(plane)
        install_kube_scheduler(plane)
        cluster = BenchCluster(plane)
        cluster.set_nodes(options.nodes)
        for name in options.only:
            pair = Pair(plane, name, plane.directory / "replicas")
            try:
                for number in range(options.rounds):
                    for signal in SIGNALS:
                        found.append(take_over(cluster, pair, number, signal, options.pods))
                        print(f"failover: {found[-1]}", file=sys.stderr, flush=True)
                        pair.succeed()
            finally:
                pair.stop()
    machine = asdict(environment.machine())
    print(f"\n{environment.date()}  {environment.commit()}  {json.dumps(machine)}\n\n{table(found)}")
    if options.json is not None:
        document = {"date": environment.date(), "machine": machine, "takeovers": [asdict(each) for each in found]}
        options.json.write_text(json.dumps(document, indent=2) + "\n")
    return 1 if any(each.late_writes for each in found if each.contestant == "bayplan") else 0


def table(found: Sequence[Takeover]) -> str:
    """Returns the times by contestant and signal, with what was written too late."""
    lines = [
        "| | signal | rounds | next bind after: median | longest | writes after the deadline | after the next lease |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for name in dict.fromkeys(each.contestant for each in found):
        for signal in SIGNALS:
            rows = [each for each in found if (each.contestant, each.signal) == (name, signal)]
            times = [each.seconds for each in rows]
            late, overlapping = (
                sum(each.late_writes for each in rows),
                sum(each.overlapping_writes for each in rows),
            )
            lines.append(
                f"| {name} | {signal} | {len(rows)} | {statistics.median(times):.1f} s | {max(times):.1f} s "
                f"| {late} | {overlapping} |"
            )
    return "\n".join(lines)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m e2e.bench.failover", description=__doc__)
    parser.add_argument("--rounds", type=int, default=1, help="of each contestant; each has all three signals")
    parser.add_argument("--pods", type=int, default=1000, help="that the leader is binding when it gets the signal")
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(_CONTESTANTS), help="contestants")
    parser.add_argument("--json", type=Path, help="file for all figures")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
