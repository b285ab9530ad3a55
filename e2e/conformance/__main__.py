"""`python -m e2e.conformance`: Kubernetes' scheduling specs, with one scheduler for all pods of the cluster."""

import argparse
import random
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from e2e.arguments import positive
from e2e.bench import environment
from e2e.conformance.cluster import BAYPLAN, KUBE_SCHEDULER, NODES, start_cluster
from e2e.conformance.configurations import CONFIGURATIONS
from e2e.conformance.oversight import problems
from e2e.conformance.report import Pass, table
from e2e.conformance.suite import Begins, Chosen, Verdict, build_suite, run_suite
from e2e.controlplane.bayplan_process import REPOSITORY
from e2e.controlplane.kubernetes_version import kubernetes_version
from e2e.controlplane.recorder import PodRecorder


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the passes, each on a cluster of its own, and prints their table; 1 if one of them is not clean."""
    options = _options(arguments)
    machine = environment.machine()
    passes = []
    for configuration in options.config:
        for number in range(options.repeat):
            title = f"{options.scheduler}, {configuration}"
            directory = options.out / f"{options.scheduler}-{configuration}-{number + 1}"
            passes.append(_run(title, directory, options, configuration, options.seed + number))
    print(f"\n{environment.date()}  {environment.commit()}  Kubernetes {kubernetes_version()}  {machine}\n")
    print(table(passes))
    return 0 if all(run.clean for run in passes) else 1


def _run(title: str, directory: Path, options: argparse.Namespace, configuration: str, seed: int) -> Pass:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    specs = 0
    verdicts: list[Verdict] = []
    program = build_suite()
    started = time.monotonic()
    _say(f"{title}, seed {seed}: starting a cluster; logs in {directory}")
    with (
        start_cluster(directory, options.scheduler, configuration) as cluster,
        PodRecorder(cluster.plane.client) as recorder,
    ):
        kubeconfig = cluster.plane.admin_kubeconfig
        steps = run_suite(program, kubeconfig, directory, nodes=NODES, seed=seed, focus=options.focus)
        for step in steps:
            if isinstance(step, Chosen):
                specs = step.specs
                _say(f"{specs} specs")
            elif isinstance(step, Begins):
                _say(f"{len(verdicts) + 1}/{specs} {step.name}")
            else:
                verdicts.append(step)
                _say(f"    {step.state} after {step.seconds:.0f} s {step.failure}".rstrip())
        found = problems(recorder.catch_up(), cluster.plane.audit_events(), cluster.scheduler)
    passed = sum(verdict.passed for verdict in verdicts)
    _say(f"{title}, seed {seed}: {passed} of {specs} passed in {time.monotonic() - started:.0f} s")
    return Pass(title, seed, specs, tuple(verdicts), tuple(found))


def _say(message: str) -> None:
    print(f"conformance: {message}", file=sys.stderr, flush=True)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m e2e.conformance", description=__doc__)
    parser.add_argument("--config", action="append", choices=CONFIGURATIONS, help="may be given twice; all without it")
    parser.add_argument("--repeat", type=positive, default=1, help="passes with each configuration")
    parser.add_argument("--focus", help="a regular expression: only specs whose names match it")
    parser.add_argument("--seed", type=int, help="of the order of the specs; each further pass has the next")
    parser.add_argument("--scheduler", choices=(BAYPLAN, KUBE_SCHEDULER), default=BAYPLAN, help="who schedules")
    parser.add_argument("--out", type=Path, default=REPOSITORY / "build" / "conformance", help="logs and JUnit reports")
    options = parser.parse_args(arguments)
    options.config = options.config or list(CONFIGURATIONS)
    options.out = options.out.resolve()
    if options.seed is None:
        options.seed = random.SystemRandom().randrange(1, 10_000)
    return options


if __name__ == "__main__":
    sys.exit(main())
