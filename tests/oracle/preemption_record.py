"""Records kube-scheduler's preemptions on random full clusters: `python -m tests.oracle.preemption_record --seed 7`.

Needs the control plane that `make controlplane` builds. The replay in test_preemption_replay.py holds bayplan against
the file.
"""

import argparse
import logging
import sys
import time
from collections import defaultdict
from copy import deepcopy
from pathlib import Path

from e2e.controlplane.client import ApiClient
from e2e.controlplane.plane import ControlPlane, ControlPlaneOptions
from tests.oracle.case import DATA, Decision, Object, Scene
from tests.oracle.families import parts
from tests.oracle.preemption_case import FILE, PreemptionCase, PreemptionDecision, write_preemptions
from tests.oracle.preemption_log import Preemption, PreemptionLog
from tests.oracle.preemption_scenes import CONFIGURATIONS, GATE, scenes_of
from tests.oracle.record import ADMISSION_OFF, running_kube_scheduler
from tests.oracle.stage import Stage

CASES = 280


class PreemptionStage(Stage):
    """A stage on which pods may preempt; preemptors and their ending victims stay until the scene is over."""

    def __init__(self, client: ApiClient, log: PreemptionLog) -> None:
        super().__init__(client, log)
        self._api, self._story = client, log

    def record(self, name: str, configuration: str, scene: Scene) -> PreemptionCase:
        """As `play`, with what the log tells of preemptions."""
        case = self.play(name, configuration, scene)
        together = zip(case.scene.incoming, case.decisions, strict=True)
        decisions = [_joined(self._story.preemptions[_key(pod)], decision) for pod, decision in together]
        return PreemptionCase(name, configuration, case.scene, decisions)

    def _decide(self, pod: Object) -> Decision | None:
        key = _key(pod)
        seen_before = self._story.updates.copy()
        if not self._is_let_in(pod):
            return Decision()
        decision = self._story.decision(key)
        preemption = self._story.preemptions[key]
        if preemption.node is not None:
            self._wait_for(preemption, seen_before, key)
        elif decision.node is None:
            namespace, name = key.split("/")
            self._api.delete("pods", name, namespace=namespace, grace_seconds=0)
        return decision

    def _is_let_in(self, pod: Object) -> bool:
        """Creates a pod; whether it is to be scheduled. The status of one that nobody may schedule yet is set first."""
        document = deepcopy(pod)
        status = document.pop("status", None)
        if status is None:
            self._api.create("pods", document)
            return True
        document["spec"]["schedulingGates"] = GATE
        namespace, name = _key(pod).split("/")
        self._api.create("pods", document)
        self._api.patch("pods", name, {"status": status}, namespace=namespace, subresource="status")
        self._story.wait(lambda: self._story.updates["waiting", _key(pod)] > 0, "a nomination")
        if "schedulingGates" in pod["spec"]:
            return False
        self._api.patch("pods", name, {"spec": {"schedulingGates": []}}, namespace=namespace)
        return True

    def _wait_for(self, preemption: Preemption, before: "dict[tuple[str, str], int]", key: str) -> None:
        """Until all victims are ending in the scheduler's eyes: each is told why, and then deleted."""
        victims = preemption.candidates[preemption.node or ""]
        ending = set(preemption.ending)

        def is_done() -> bool:
            seen = self._story.updates
            return (preemption.finished or ending == set(victims)) and all(
                seen["placed", each] >= before["placed", each] + 2 for each in victims if each not in ending
            )

        self._story.wait(is_done, f"the end of the victims of {key}")
        assert sorted(preemption.ended + preemption.ending) == sorted(victims), (key, preemption)


def _joined(preemption: Preemption, decision: Decision) -> PreemptionDecision:
    checked = preemption.checked if len(preemption.checked) < preemption.potential else []
    return PreemptionDecision(
        decision.node,
        decision.feasible,
        decision.message,
        decision.error,
        preemption.node,
        preemption.potential,
        preemption.wanted,
        checked,
        preemption.candidates,
    )


def _key(pod: Object) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def record(count: int, seed: int, directory: Path) -> None:
    """Records so many cases, and those with volumes besides, to one file in `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    scenes: dict[str, list[tuple[str, Scene]]] = defaultdict(list)
    for name, configuration, scene in scenes_of(seed, count):
        scenes[configuration].append((name, scene))
    cases: list[PreemptionCase] = []
    # Priorities are given as numbers, for which the API server would want classes.
    options = ControlPlaneOptions(bench=True, disable_admission=(*ADMISSION_OFF, "Priority"))
    with ControlPlane.start(options) as plane:
        for configuration, group in scenes.items():
            started = time.monotonic()
            with running_kube_scheduler(plane, CONFIGURATIONS[configuration], PreemptionLog) as log:
                stage = PreemptionStage(plane.client, log)
                if not cases:
                    stage.create_namespaces(parts.namespaces())
                cases += [stage.record(name, configuration, scene) for name, scene in group]
            print(f"{configuration}: {len(group)} cases in {time.monotonic() - started:.0f} s", flush=True)
    cases.sort(key=lambda case: case.name)
    write_preemptions(directory / FILE, CONFIGURATIONS, cases)


def main() -> int:
    """Parses the arguments and records."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=CASES)
    parser.add_argument("--out", type=Path, default=DATA, help="folder for the file")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    started = time.monotonic()
    record(arguments.cases, arguments.seed, arguments.out)
    print(
        f"{arguments.cases} cases of preemption and those with volumes in {time.monotonic() - started:.0f} s",
        flush=True,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
