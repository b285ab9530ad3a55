"""Stored cases through the engine, as `bayplan simulate --explain` runs them."""

import asyncio
import json
import time
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import replace
from functools import cache, cached_property
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import numpy as np
from tests.oracle.case import Decision, Object, Recorded
from tests.oracle.claims import allocated, claim_names, extended_name
from tests.oracle.comparison import (
    claim_differences,
    decision_of,
    differences,
    extended_differences,
    extended_preemption_differences,
    nomination_differences,
    preemption_differences,
)
from tests.oracle.extenders import NOWHERE, at_no_address, moved

from bayplan.api.claim_objects import ResourceClaim
from bayplan.api.kinds import CLAIM_TEMPLATES, RESOURCES
from bayplan.api.meta_objects import key_of
from bayplan.api.objects import Node, Pod
from bayplan.cache.cache import Cache
from bayplan.cache.pod_info import PodInfo
from bayplan.config.bayplan_args import DefaultPreemptionArgs
from bayplan.config.load import load_configuration
from bayplan.config.types import Profile, SchedulerConfiguration
from bayplan.framework.interface import CycleState
from bayplan.framework.nominator import Nominator
from bayplan.framework.runtime import Framework
from bayplan.plugins.registry import build_frameworks
from bayplan.scheduler.cycle import SchedulingCycle
from bayplan.scheduler.decision import FitError, Placement
from bayplan.scheduler.extender.client import make_clients
from bayplan.scheduler.extender.cycle import ExtendedCycle
from bayplan.simulate.admission import Admission
from bayplan.simulate.documents import Decoder
from bayplan.simulate.looked_up import looked_up, with_claims

_RESOURCES = {resource.kind: resource for resource in (*RESOURCES, CLAIM_TEMPLATES)}
_DECODERS = {resource: Decoder(resource.type) for resource in _RESOURCES.values()}
_NODE, _POD = Decoder(Node), Decoder(Pod)
_PREEMPTED = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}


@cache
def loaded(text: str) -> SchedulerConfiguration:
    """The configuration as bayplan loads it from a file; the same document is read once."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "config.yaml"
        path.write_text(text)
        return load_configuration(path)


class Replay:
    """A recorded cluster in the engine, which decides about one incoming pod after the other.

    The cluster goes on as kube-scheduler decided, as both may choose differently among the best. Pods of other
    schedulers are left out: kube-scheduler pays no attention to them. `address` is where extenders answer.
    """

    def __init__(self, recorded: Recorded, address: str = NOWHERE) -> None:
        self._case = recorded.case
        self._address = address
        self._configuration = loaded(json.dumps(moved(recorded.document, address)))
        self._cache = Cache()
        self._admission = Admission(())
        self._nominator = Nominator()
        self._documents: dict[str, Object] = {}
        self._state: CycleState = {}
        self._extenders = make_clients(self._configuration.extenders)
        self._frameworks = self._build(self._configuration)
        self._cycle = SchedulingCycle(self._cache.nodes, self._nominator, self._frameworks.values())
        scene, listers = self._case.scene, self._cache.listers
        self._objects = {(each["kind"], each["metadata"]["name"]): each for each in scene.objects}
        self._look_up(scene.objects)
        for kind in listers.wanted():
            listers.of(kind).synced = True
        for node in scene.nodes:
            self._register(node)
        for pod in scene.placed:
            self._place(pod)

    def differences(self) -> Iterator[str]:
        """What differs about each pod, a line each."""
        scene = self._case.scene
        with asyncio.Runner() as runner:
            for index, (document, decided) in enumerate(zip(scene.incoming, self._case.decisions, strict=True)):
                for changed in scene.updates_after(index):
                    self._update(changed)
                pod = PodInfo(self._admission.pod(_POD(document)))
                # What is recorded of ephemeral volumes had no controller that makes their claims.
                if pod.pod.spec.resource_claims:
                    (pod,) = with_claims(self._cache.listers, [pod])
                if pod.pod.status.nominated_node_name:
                    self._nominator.add(pod, pod.pod.status.nominated_node_name)
                if "schedulingGates" in document["spec"]:
                    continue
                self._documents[pod.key] = document
                yield from (f"{pod.key}: {line}" for line in self._decide(pod, decided, runner))
                self._follow(pod, decided)
                yield from (f"{pod.key}: {line}" for line in self._claims_differ(document, decided))
            for each in self._extenders:
                runner.run(each.close())

    def _decide(self, pod: PodInfo, decided: Decision, runner: asyncio.Runner) -> list[str]:
        """What differs, with the budgets in the order in which least does.

        kube-scheduler takes them as a map gives them, which tells where a pod matches one that is used up.
        """
        lines = self._decide_once(pod, decided, runner)
        budgets = [each for each in self._case.scene.objects if each["kind"] == "PodDisruptionBudget"]
        for order in permutations(budgets) if len(budgets) > 1 and decided.candidates else ():
            if not lines:
                break
            self._look_up(order)
            lines = min(lines, self._decide_once(pod, decided, runner), key=len)
        return lines

    def _decide_once(self, pod: PodInfo, decided: Decision, runner: asyncio.Runner) -> list[str]:
        framework = self._frameworks[pod.pod.spec.scheduler_name]
        try:
            if self._extenders:
                return runner.run(self._decide_with_extenders(pod, framework, decided))
            decision = self._cycle.schedule(pod, framework)
            found = decision_of(decision)
            outcome = everywhere = decision.outcome
            self._state = outcome.state if isinstance(outcome, Placement) else {}
            if decided.wanted < decided.potential:
                everywhere = self._cycle.schedule(pod, self._unlimited[framework.profile_name]).outcome
        except Exception as error:  # noqa: BLE001 - the loop turns whatever a plugin raises into a message
            text = at_no_address(str(error), self._address)
            if decided.message in self._errors_of_devices(pod, framework):
                text = str(decided.message)
            return differences(decided, Decision(message=text, error=True))
        lines = differences(decided, found)
        if isinstance(outcome, FitError):
            assert isinstance(everywhere, FitError)
            lines += preemption_differences(decided, outcome, everywhere.post_filter.candidates, self._alike)
            lines += _nomination_differences(pod, decided, outcome)
        return lines

    def _errors_of_devices(self, pod: PodInfo, framework: Framework) -> Iterator[str]:
        """The errors of single nodes: kube-scheduler begins at any of them, and ends with the first error."""
        plugin = next((each for each in framework.filters if each.name == "DynamicResources"), None)
        state: CycleState = {}
        if plugin is None:
            return
        for pre_filter in framework.pre_filters:
            pre_filter.pre_filter(state, pod, self._cache.nodes)
        if plugin.name not in state:
            return
        for row in self._cache.nodes.rows():
            rows = np.array([row])
            plugin.filter(state, pod, self._cache.nodes, rows)
            for reason in plugin.reasons(state, pod, self._cache.nodes, rows):
                yield f'running "{plugin.name}" filter plugin: {reason.text}'

    async def _decide_with_extenders(self, pod: PodInfo, framework: Framework, decided: Decision) -> list[str]:
        async def whole(asked: PodInfo) -> msgspec.Raw:
            return msgspec.Raw(json.dumps(self._documents[asked.key]).encode())

        extended = ExtendedCycle(self._cycle, self._cache.nodes, self._extenders, whole)
        outcome = (await extended.schedule(pod, framework)).outcome
        if isinstance(outcome, Placement):
            return list(extended_differences(decided, outcome))
        lines = differences(decided, Decision(message=at_no_address(outcome.message, self._address)))
        lines += extended_preemption_differences(decided, outcome)
        return [*lines, *_nomination_differences(pod, decided, outcome)]

    def _alike(self, victim: str) -> str:
        """What tells a victim from others: all of it but its name, as long as it has not started."""
        document = self._documents[victim]
        if document.get("status", {}).get("startTime"):
            return victim
        return json.dumps({**document, "metadata": {**document["metadata"], "name": ""}}, sort_keys=True)

    def _follow(self, pod: PodInfo, decided: Decision) -> None:
        self._nominator.delete(pod.uid)
        document = self._documents[pod.key]
        if decided.node is not None:
            self._documents[pod.key] = {**document, "spec": {**document["spec"], "nodeName": decided.node}}
            framework = self._frameworks[pod.pod.spec.scheduler_name]
            for plugin in framework.reserves:
                plugin.reserve(self._state if decided.claims else {}, pod, decided.node)
            for _, exchange in framework.run_pre_bind({}, pod, decided.node) if decided.claims else ():
                exchange.assume()
            self._cache.assume_pod(pod, decided.node)
        elif decided.nominated is not None:
            ended = [self._end(victim) for victim in decided.candidates[decided.nominated]]
            for other in self._nominator.nominated_pods_for_node(decided.nominated) if any(ended) else ():
                if other.priority < pod.priority:
                    self._nominator.delete(other.uid)
            self._nominator.add(pod, decided.nominated)

    def _claims_differ(self, document: Object, decided: Decision) -> Iterator[str]:
        """What differs in the devices that the pod's claims have, and in how that is written down."""
        listed, namespace = self._cache.listers.of(ResourceClaim), document["metadata"]["namespace"]
        names = [*claim_names(document), extended_name(document)] if decided.node is not None else ()
        found = [claim for name in names if (claim := listed.get(f"{namespace}/{name}")) is not None]
        yield from claim_differences(decided.claims, allocated(msgspec.to_builtins(found)))

    def _end(self, victim: str) -> bool:
        """Whether the victim was not on its way out already."""
        document = deepcopy(self._documents[victim])
        is_running = "deletionTimestamp" not in document["metadata"]
        if is_running:
            document["metadata"]["deletionTimestamp"] = "2026-06-01T00:00:00Z"
            document.setdefault("status", {}).setdefault("conditions", []).append(_PREEMPTED)
        self._place(document)
        return is_running

    def _update(self, changed: Object) -> None:
        """Makes a node or a placed pod what it is from now on, as the API server does with a patch."""
        metadata = changed["metadata"]
        if changed.keys() & {"patch", "created", "deleted"}:
            self._change(changed)
            return
        if changed["kind"] == "Node":
            self._register(_merged(self._documents[metadata["name"]], changed))
            return
        document = deepcopy(self._documents[f"{metadata['namespace']}/{metadata['name']}"])
        asked = {each["name"]: each["resources"]["requests"] for each in changed.get("spec", {}).get("containers", [])}
        for container in document["spec"]["containers"]:
            container["resources"]["requests"] |= asked.get(container["name"], {})
        self._place(_merged(document, {"status": changed.get("status", {})}))

    def _change(self, changed: Object) -> None:
        """Has an object come, change or go."""
        metadata, patch = changed["metadata"], changed.get("patch", {})
        name, namespace = metadata["name"], metadata.get("namespace")
        key = f"{namespace}/{name}" if namespace else name
        if changed["kind"] == "Node":
            if "deleted" in changed:
                self._cache.remove_node(name)
            else:
                self._register(changed.get("created") or _merged(self._documents[name], patch))
        elif changed["kind"] == "Pod":
            if "deleted" in changed:
                self._cache.remove_pod(PodInfo(self._admission.pod(_POD(self._documents[key]))).uid)
            else:
                self._place(_merged(self._documents[key], patch))
        else:
            key = changed["kind"], name
            self._objects[key] = _merged(self._objects[key], patch)
            self._look_up([self._objects[key]])

    def _look_up(self, documents: Iterable[Object]) -> None:
        """Has plugins find these objects, as they are and in this order."""
        for each in documents:
            resource = _RESOURCES[each["kind"]]
            lister, obj = self._cache.listers.of(resource.type), looked_up(_DECODERS[resource](each), resource)
            lister.delete(key_of(obj.metadata))
            lister.set(obj)

    def _register(self, document: Object) -> None:
        self._documents[document["metadata"]["name"]] = document
        self._cache.set_node(self._admission.node(_NODE(document)))

    def _place(self, document: Object) -> None:
        pod = PodInfo(self._admission.pod(_POD(document)))
        self._documents[pod.key] = document
        self._cache.set_pod(pod)

    def _build(self, configuration: SchedulerConfiguration) -> dict[str, Framework]:
        # A search for devices has no end then but its own.
        standing_still = time.time()
        return build_frameworks(
            configuration, self._cache.nodes, self._cache.listers, self._nominator, lambda: standing_still
        )

    @cached_property
    def _unlimited(self) -> dict[str, Framework]:
        """Frameworks that look at every node for candidates."""
        profiles = tuple(_looking_everywhere(profile) for profile in self._configuration.profiles)
        return self._build(replace(self._configuration, profiles=profiles))


def _nomination_differences(pod: PodInfo, decided: Decision, ours: FitError) -> Iterator[str]:
    return nomination_differences(decided, ours, had_one=bool(pod.pod.status.nominated_node_name))


def _looking_everywhere(profile: Profile) -> Profile:
    args = profile.plugin_config["DefaultPreemption"]
    assert isinstance(args, DefaultPreemptionArgs)
    config = {**profile.plugin_config, "DefaultPreemption": replace(args, min_candidate_nodes_percentage=100)}
    return replace(profile, plugin_config=config)


def _merged(document: Object, change: Object) -> Object:
    """The document with a change merged in: objects field by field, everything else as a whole."""
    found = dict(document)
    for name, value in change.items():
        if value is None:
            found.pop(name, None)
            continue
        found[name] = _merged(found.get(name, {}), value) if isinstance(value, dict) else value
    return found
