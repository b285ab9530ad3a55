"""Simulations of the running cluster's future, with the priority classes that the API server has."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, NamedTuple

import aiohttp
import msgspec
from msgspec import structs

from bayplan.api.claim_objects import ResourceClaimTemplate
from bayplan.api.credentials import Credentials
from bayplan.api.errors import DECODE_ERRORS, CredentialsError
from bayplan.api.live_paths import ALL_THAT_FIT, RefusedQuestionError
from bayplan.api.meta_objects import key_of
from bayplan.api.watch_source import AnswerError, BrokenStreamError, WatchSource, list_pages
from bayplan.api.workload_objects import PriorityClass
from bayplan.cache.listers import Listers
from bayplan.cache.pod_info import PodInfo
from bayplan.live.answers import SimulationAnswer
from bayplan.live.cluster_view import ClusterCopy
from bayplan.simulate.admission import NO_PRIORITY_CLASS
from bayplan.simulate.admission_policies import NO_RUNTIME_CLASS
from bayplan.simulate.capacity import NotCountedError, counted_pod, how_many_fit
from bayplan.simulate.cluster import ObjectReader
from bayplan.simulate.cluster_objects import ClusterObjects
from bayplan.simulate.documents import ClusterFileError, raw_objects
from bayplan.simulate.report import Capacity
from bayplan.simulate.simulator import Simulator
from bayplan.simulate.step import Step, explaining


class KnownClasses(NamedTuple):
    """The cluster's PriorityClasses, or none and the `problem` because of which they are not known."""

    classes: Sequence[PriorityClass] = ()
    problem: str = ""


ReadClasses = Callable[[], Awaitable[KnownClasses]]


def always(classes: Sequence[PriorityClass]) -> ReadClasses:
    """Return what gives the same classes each time, as those of files are."""

    async def read() -> KnownClasses:
        return KnownClasses(classes)

    return read


PATH: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"
MOST_CLASSES: Final = 1000
"""So many are read; clusters have some ten."""
_TIMEOUT_SECONDS: Final = 5.0

_decode: Final = msgspec.json.Decoder(PriorityClass).decode


@dataclass(eq=False)
class PriorityClassList:
    """Reads all classes anew for each question, so that scheduling, which needs none, neither waits for nor keeps any.

    Questions that come while they are read share what is read, so that however many ask, one list is open. A class that
    cannot be read counts as missing.
    """

    credentials: Credentials
    open_source: Callable[..., WatchSource] = WatchSource
    _reading: asyncio.Task[KnownClasses] | None = field(default=None, init=False)

    async def read(self) -> KnownClasses:
        """Return the classes, or why they are not known; questions are answered without them then."""
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read(), name="priority classes")
        return await asyncio.shield(self._reading)

    async def _read(self) -> KnownClasses:
        source = self.open_source(self.credentials, PATH, list_timeout=_TIMEOUT_SECONDS, inactivity=_TIMEOUT_SECONDS)
        listed, classes = 0, list[PriorityClass]()
        try:
            async for _, page in list_pages(source.page):
                items = page.items or ()
                listed += len(items)
                if listed > MOST_CLASSES:
                    return KnownClasses(problem=f"there are more than {MOST_CLASSES}")
                for raw in items:
                    with suppress(*DECODE_ERRORS):
                        classes.append(_decode(raw))
        except AnswerError as error:
            return KnownClasses(problem=f"the API server answers {error.status} to who lists them")
        except (BrokenStreamError, CredentialsError, aiohttp.ClientError, TimeoutError, OSError):
            return KnownClasses(problem="the API server does not answer")
        finally:
            await source.close()
        return KnownClasses(classes)


MOST_PODS: Final = 500
"""Pods that are placed in one answer."""
MOST_SECONDS: Final = 20.0
_NAME: Final = "body"


class _Timed(Simulator):
    """Decides until its time is over."""

    until = 0.0

    def step(self) -> Step | None:
        """As `Simulator.step`; raises RefusedQuestionError when the time is over."""
        if time.monotonic() > self.until:
            raise RefusedQuestionError(
                HTTPStatus.SERVICE_UNAVAILABLE, f"it takes longer than {MOST_SECONDS:g} s; ask for fewer pods"
            )
        return super().step()


def simulation_answer(copy: ClusterCopy, body: bytes, count: str, known: KnownClasses) -> SimulationAnswer:
    """Place the pods of `body`, a JSON object, list or workload, one after the other, ahead of all that wait.

    They can name the `known` PriorityClasses, the pod groups of the cluster, and those in `body`, which come first.
    With `count`, a number or `max`, say how many of the one pod or workload fit, instead.

    Raises:
        RefusedQuestionError: the body is none that can be placed (400), or it takes too long (503).
    """
    objects = _objects(body, known)
    simulator = _Timed(copy.configuration, cache=copy.cache(), nominator=copy.nominator(), moment=copy.moment)
    simulator.until = time.monotonic() + MOST_SECONDS
    for source in copy.served:
        simulator.groups.serve(source)
    objects.pod_groups = [*copy.groups, *objects.pod_groups]
    ours = simulator.frameworks
    for pod in objects.pods:
        name = pod.pod.spec.scheduler_name
        if name not in ours:
            text = f"it is for {name[:253]!a}, and this one schedules for {', '.join(ours)}"
            raise _refused(f"pod {pod.key}: spec.schedulerName: {text}")
    objects.pods = [_asked(pod, number) for number, pod in enumerate(objects.pods)]
    _check_templates(objects, simulator.cache.listers)
    if count:
        return SimulationAnswer([], _counted(simulator, copy, objects, count))
    simulator.add(objects)
    simulator.reader = explaining(simulator.cache.nodes)
    while (step := simulator.step()) is not None:
        simulator.report_of(step.pod).attempts[-1] = step.explained_attempt()
    return SimulationAnswer(simulator.report().pods, None)


def _counted(simulator: Simulator, copy: ClusterCopy, objects: ClusterObjects, count: str) -> Capacity:
    try:
        pod = counted_pod(objects.pods)
    except NotCountedError as error:
        raise _refused(f"count: {error}") from None
    objects.pods = []
    simulator.add(objects)
    return how_many_fit(simulator, copy.configuration, pod, None if count == ALL_THAT_FIT else int(count))


def _asked(pod: PodInfo, number: int) -> PodInfo:
    """The pod as another than the one it may be a copy of, which may be on a node, and as one without a node."""
    meta = structs.replace(pod.pod.metadata, uid=f"asked:{number}", deletion_timestamp=None)
    # Its claims are made of the templates that it names, and are not those of the one it may be a copy of.
    status = structs.replace(pod.pod.status, phase="Pending", nominated_node_name="", resource_claim_statuses=None)
    spec = structs.replace(pod.pod.spec, node_name="")
    return PodInfo(structs.replace(pod.pod, metadata=meta, spec=spec, status=status))


def _check_templates(objects: ClusterObjects, listers: Listers) -> None:
    known = listers.of(ResourceClaimTemplate)
    given = {key_of(each.metadata) for each in objects.looked_up if isinstance(each, ResourceClaimTemplate)}
    for pod in objects.pods:
        for number, entry in enumerate(pod.pod.spec.resource_claims or ()):
            key = f"{pod.namespace}/{entry.resource_claim_template_name}"
            if entry.resource_claim_template_name is not None and key not in given and known.get(key) is None:
                text = f"no ResourceClaimTemplate {key[:506]!a} was found; those of the cluster are not read"
                raise _refused(f"pod {pod.key}: spec.resourceClaims[{number}]: {text}: put it beside the pod")


def _objects(body: bytes, known: KnownClasses) -> ClusterObjects:
    try:
        msgspec.json.decode(body, type=msgspec.Raw)
    except DECODE_ERRORS as error:
        raise _refused(f"{_NAME}: is no JSON: {error}") from None
    if body.lstrip()[:1] not in {b"{", b"["}:
        raise _refused(f"{_NAME}: is no JSON object")
    reader = ObjectReader(most_pods=MOST_PODS, known_classes=known.classes)
    try:
        for raw in raw_objects(body, _NAME):
            if raw.kind == "Node":
                raise _refused(f"{raw.where}: Node: only pods, workloads and what they look up can be asked about")
            reader.take(raw)
        reader.replace_from_here()
        objects = reader.finish()
    except (ClusterFileError, *DECODE_ERRORS) as error:
        raise _refused(str(error)) from None
    for skipped in objects.skipped:
        text = f"{skipped.source}: {skipped.kind} {skipped.namespace}/{skipped.name}: {skipped.message}"
        raise _refused(text + _what_helps(skipped.message, known))
    if not objects.pods:
        raise _refused(f"{_NAME}: holds no pod to place, and no workload that would make one")
    if len(objects.pods) > MOST_PODS:
        raise _refused(f"{_NAME}: {len(objects.pods)} pods are more than the {MOST_PODS} of one question")
    return objects


def _what_helps(problem: str, known: KnownClasses) -> str:
    if known.problem and problem.startswith(NO_PRIORITY_CLASS):
        return f"; {known.problem}: put the PriorityClass beside the pod, or give spec.priority instead"
    if problem.startswith(NO_RUNTIME_CLASS):
        return "; those of the cluster are not read: put the RuntimeClass beside the pod"
    return ""


def _refused(text: str) -> RefusedQuestionError:
    return RefusedQuestionError(HTTPStatus.BAD_REQUEST, text)
