"""`python -m e2e.soak`: an hour of everything at once, and what it must show. See docs/reliability.md."""

import argparse
import asyncio
import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bayplan.cli.process import end_process
from e2e.bench import environment
from e2e.bench.workload import scheduler_configuration
from e2e.controlplane.installation import NAMESPACE as SYSTEM
from e2e.controlplane.installation import install_bayplan
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from e2e.soak.bad_namespace import NAMESPACE as BAD_NAMESPACE
from e2e.soak.instances import Instances
from e2e.soak.plan import Plan
from e2e.soak.report import SampleFile, verdict_lines
from e2e.soak.soak import Found, Soak
from e2e.soak.token_rotation import TokenRotation
from e2e.soak.verdict import (
    Check,
    bad_namespace_checks,
    coverage_checks,
    ending_checks,
    memory_checks,
    percentiles,
    promise_checks,
)
from e2e.soak.workload import CLASSES, NAMESPACE, soak_nodes

_AFTER_RESTART_SECONDS = 30.0
# Two cores are for the schedulers, too: kube-apiserver may use memory in place of a sixth of its CPU.
_GARBAGE_PERCENT = 400


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a soak, writes its samples and its summary, and returns 1 if a check failed."""
    options = options_of(arguments)
    plan = plan_of(options)
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    facts: dict[str, object] = {
        "date": environment.date(),
        "commit": environment.commit(),
        "machine": asdict(environment.machine()),
        "versions": environment.versions(),
        "plan": asdict(plan),
    }
    samples = SampleFile(out / "samples.csv")
    with ControlPlane.start(ControlPlaneOptions(bench=True, garbage_percent=_GARBAGE_PERCENT)) as plane:
        install_bayplan(plane)
        rotation = TokenRotation(plane)
        _prepare(plane, plan)
        instances = Instances(plane.directory / "instances", rotation.kubeconfig, _configuration(plan), plan.instances)
        soak = Soak(plane, instances, rotation, plan, samples=samples, say=_say)
        try:
            instances.wait_ready()
            found = asyncio.run(soak.run())
        finally:
            instances.stop(plan.seconds)
            for log in instances.log_files():
                shutil.copyfile(log, out / f"{log.parent.name}.log")
    soak.close()
    samples.close()
    checks = _checks(found, instances, plan)
    summary = {**facts, **_figures(found), "checks": [asdict(each) for each in checks]}
    (out / "summary.json").write_text(json.dumps(summary, indent=2, default=asdict) + "\n")
    for line in verdict_lines(checks):
        _say(line)
    return 0 if all(each.passed for each in checks) else 1


def plan_of(options: argparse.Namespace) -> Plan:
    """Returns the plan that the command line asks for."""
    return Plan(
        minutes=options.minutes,
        nodes=options.nodes,
        rate=options.rate,
        lifetime=options.lifetime,
        instances=options.instances,
        bad_pods=options.bad_pods,
    )


def _prepare(plane: ControlPlane, plan: Plan) -> None:
    client = plane.client
    for name in (NAMESPACE, BAD_NAMESPACE):
        client.create("namespaces", {"metadata": {"name": name}})
    for name, priority in CLASSES.items():
        client.create("priorityclasses", {"metadata": {"name": name}, "value": priority})
    client.create_all("nodes", soak_nodes(plan))


def _configuration(plan: Plan) -> dict[str, Any]:
    election = {"leaderElect": plan.instances > 1, "resourceNamespace": SYSTEM}
    return {**scheduler_configuration(None), "leaderElection": election}


def _checks(found: Found, instances: Instances, plan: Plan) -> list[Check]:
    tracebacks = sum(path.read_text(errors="replace").count("Traceback") for path in instances.log_files())
    return [
        *promise_checks(found.broken, found.lost, found.differences),
        *memory_checks(found.samples, plan),
        *ending_checks(instances.endings, found.restarts),
        *coverage_checks(found.counts, plan, created_seconds=found.created_seconds, restarts=found.restarts),
        *bad_namespace_checks(found.bad_rounds, found.latencies, plan, started=found.started),
        Check("no exception in a log", not tracebacks, f"{tracebacks} tracebacks"),
    ]


def _figures(found: Found) -> dict[str, object]:
    """What is reported and not judged: rates and latencies, all and without those that the restart held up."""
    moments = [
        (found.started + began, found.started + ended + _AFTER_RESTART_SECONDS) for began, ended in found.restarts
    ]
    undisturbed = [
        each for each in found.latencies if not any(began - 1 <= each.sent <= ended for began, ended in moments)
    ]
    kinds = sorted({each.kind for each in found.latencies})
    return {
        "counts": found.counts,
        "answers": found.answers,
        "skipped": found.skipped,
        "gaps": found.gaps,
        "restarts": found.restarts,
        "bad_rounds": found.bad_rounds,
        "latency": percentiles(found.latencies),
        "latency_but_at_the_restart": percentiles(undisturbed),
        "latency_by_kind": {kind: percentiles(each for each in undisturbed if each.kind == kind) for kind in kinds},
        "minutes": found.minutes,
    }


def _say(message: str) -> None:
    print(f"soak: {message}", flush=True)


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Returns the command line."""
    parser = argparse.ArgumentParser(prog="python -m e2e.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=100.0, help="pods created, and deleted, a second")
    parser.add_argument("--lifetime", type=float, default=60.0, help="seconds that a pod runs")
    parser.add_argument("--instances", type=int, default=2, help="one leads, the others stand by")
    parser.add_argument("--bad-pods", type=int, default=200, help="in a namespace whose webhook fails their binds")
    parser.add_argument("--out", type=Path, default=Path("build/soak"), help="folder for samples, summary and logs")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    end_process(main())
