"""`run` from its list and watches on an API server, and `simulate` from a file: each attempt that they make."""

import asyncio
import json
from math import inf

from aiohttp import web
from tests.controller.kubernetes_api import NODES, PODS, KubernetesApi
from tests.faults.faults import status_body, status_response
from tests.waiting import until

from bayplan.api.credentials import Credentials
from bayplan.api.workload_objects import PodDisruptionBudget
from bayplan.controller import build
from bayplan.scheduler.attempt import Failed, Nominated, Reserved
from bayplan.simulate import simulator
from bayplan.simulate.cluster import read_cluster

BUDGETS = "/apis/policy/v1/poddisruptionbudgets"
KINDS = {NODES: ("v1", "Node"), PODS: ("v1", "Pod"), BUDGETS: ("policy/v1", "PodDisruptionBudget")}
MOST_ATTEMPTS = 150


class Api(KubernetesApi):
    """An API server with budgets: an eviction is refused where one allows none, and each end of a pod counts."""

    def fill(self, objects):
        collections = {kind: collection for collection, (_, kind) in KINDS.items()}
        for obj in objects:
            self.put(collections[obj["kind"]], obj)

    def file(self, path):
        """What `kubectl get -o json` gives."""
        items = [
            {"apiVersion": version, "kind": kind, **self.objects[collection][key]}
            for collection, (version, kind) in KINDS.items()
            for key in sorted(self.objects.get(collection, ()))
        ]
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        return str(path)

    def pods(self):
        return {pod["metadata"]["uid"]: pod for pod in self.objects[PODS].values()}

    def allowed(self):
        budgets = self.objects.get(BUDGETS, {})
        return {key: budget["status"]["disruptionsAllowed"] for key, budget in budgets.items()}

    def _covering(self, pod):
        for budget in list(self.objects.get(BUDGETS, {}).values()):
            if budget["spec"]["selector"]["matchLabels"].items() <= pod["metadata"].get("labels", {}).items():
                yield budget

    def _remove(self, target, obj, body):
        for budget in self._covering(obj):
            left = max(budget["status"]["disruptionsAllowed"] - 1, 0)
            self.put(BUDGETS, {**budget, "status": {**budget["status"], "disruptionsAllowed": left}})
        return super()._remove(target, obj, body)

    def _bind(self, target, obj, body):
        if target.subresource != "eviction":
            return super()._bind(target, obj, body)
        if not all(budget["status"]["disruptionsAllowed"] for budget in self._covering(obj)):
            return status_response(429, "TooManyRequests", "it would violate the pod's disruption budget")
        self._remove(target, obj, body)
        return web.json_response(status_body(201), status=201)

    def _patch(self, target, obj, body):
        status = {**obj["status"], **body["status"]}
        status = {key: value for key, value in status.items() if value is not None}
        # As in an API server, what changes nothing makes no version.
        return web.json_response(obj if status == obj["status"] else self.put(PODS, {**obj, "status": status}))


class Run:
    """The parts of `bayplan run`, of which the test calls one attempt after the other."""

    def __init__(self, api, configuration):
        self.api = api
        self.parts = build.build(configuration, Credentials(server=api.url))
        scheduler = self.parts.scheduler
        self.cache, self.queue, self.dispatcher = scheduler.cache, scheduler.queue, scheduler.dispatcher
        self.messages = {}

    async def attempts(self):
        """(uid, node, message, nomination) of each attempt, and why pods are gated in the end."""
        watches = [asyncio.create_task(work) for work in self.parts.watches.work().values()]
        try:
            await until(lambda: self.parts.watches.synced)
            assert await self.parts.intake_list.fill()
            made = []
            while (attempt := self.parts.scheduler.schedule_one()) is not None:
                assert len(made) < MOST_ATTEMPTS, "run does not end"
                made.append(await self._follow(attempt))
            return made, {uid: self.queue.get(uid).gating_message for uid in self.queue.uids()}
        finally:
            for watch in watches:
                watch.cancel()
            await asyncio.gather(*watches, return_exceptions=True)
            await self.dispatcher.drain(binds_seconds=1, calls_seconds=1)
            for client in self.parts.clients:
                await client.close()

    async def _follow(self, attempt):
        uid, node, message = attempt.pod.uid, None, None
        if isinstance(attempt, Reserved):
            node = attempt.placement.node_name
        elif isinstance(attempt, Nominated | Failed):
            message = attempt.message if isinstance(attempt, Failed) else attempt.fit_error.message
            self.messages[uid] = message
        self.parts.scheduler.write_texts(inf)
        await until(self._settled)
        return uid, node, message, self.queue.nominator.nominated_node(uid)

    def _settled(self):
        """Whether everything was written that follows from the attempts, and everything was heard of."""
        pods = self.api.pods()
        bound = {uid: pod["spec"]["nodeName"] for uid, pod in pods.items() if pod["spec"].get("nodeName")}
        listed = self.cache.listers.of(PodDisruptionBudget).objects
        return (
            not self.dispatcher.jobs_in_flight
            and not list(self.cache.assumed_pods())
            and all(self.cache.node_of(uid) == node_name for uid, node_name in bound.items())
            and self.cache.sizes().pods == len(bound)
            and {key: budget.status.disruptions_allowed for key, budget in listed.items()} == self.api.allowed()
            and all(self._is_current(self.queue.get(uid), pods[uid]) for uid in self.queue.uids())
        )

    def _is_current(self, queued, pod):
        uid, status = queued.uid, pod["status"]
        said = {each["message"] for each in status.get("conditions", ())}
        return (
            queued.sub_queue is not None
            and queued.pod_info.pod.metadata.resource_version == pod["metadata"]["resourceVersion"]
            and status.get("nominatedNodeName") == self.queue.nominator.nominated_node(uid)
            and (uid not in self.messages or self.messages[uid] in said)
        )


def attempts_of_simulation(file, configuration):
    """As `Run.attempts`."""
    simulation = simulator.Simulator(configuration)
    simulation.add(read_cluster([file]))
    made = []
    while (step := simulation.step()) is not None:
        assert len(made) < MOST_ATTEMPTS, "simulate does not end"
        attempt, uid = step.attempt(), step.pod.uid
        made.append((uid, attempt.node, attempt.message, simulation.queue.nominator.nominated_node(uid)))
    return made, {uid: simulation.queue.get(uid).gating_message for uid in simulation.queue.uids()}


def node(name, cpu="4", **labels):
    labels = {"kubernetes.io/hostname": name, **labels}
    allocatable = {"cpu": cpu, "memory": "8Gi", "pods": "20"}
    return {"kind": "Node", "metadata": {"name": name, "labels": labels}, "status": {"allocatable": allocatable}}


def pod(name, cpu="1", *, labels=None, nominated="", created=1, scheduler="bayplan", **spec):
    metadata = {"name": name, "namespace": "default", "uid": name, "labels": labels or {}}
    metadata["creationTimestamp"] = f"2026-01-01T00:00:{created:02}Z"
    status = {"phase": "Running" if "nodeName" in spec else "Pending"}
    if nominated:
        status["nominatedNodeName"] = nominated
    if "nodeName" in spec:
        status["startTime"] = f"2026-01-01T00:01:{created:02}Z"
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
    spec = {"schedulerName": scheduler, "containers": containers, **spec}
    return {"kind": "Pod", "metadata": metadata, "spec": spec, "status": status}
