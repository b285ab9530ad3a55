"""What users do all the time: create pods, delete them, and change what running ones ask for."""

import random
import time
from functools import partial

from bayplan.api.errors import UnreachableError
from e2e.controlplane.client import path_of
from e2e.soak.errands import NO_ANSWER, STRATEGIC_PATCH, Errands
from e2e.soak.ledger import Ledger, Tracked
from e2e.soak.workload import FILLER, NAMESPACE, PLAIN, Creation, Workload

_CREATED, _OK, _GONE = 201, (200, 202), 404
# As large as that for every pod of a node, and the node still has CPU left: kubelets need not refuse.
_PLAIN_SIZES = ("50m", "100m", "200m")
_SHRUNK_FILLER = "500m"
_TRIES = 20


class Users:
    """Begins what is due at a moment; nothing here waits for an answer."""

    def __init__(self, ledger: Ledger, errands: Errands, workload: Workload, *, seed: int) -> None:
        self._ledger = ledger
        self._errands = errands
        self._workload = workload
        self._random = random.Random(seed)

    def create(self) -> None:
        """Creates the next pod."""
        creation = next(self._workload)
        self._errands.start(f"create {creation.name}", partial(self._create, creation))

    def delete_expired(self) -> None:
        """Deletes the pods that have lived long enough."""
        now = time.monotonic()
        for tracked in self._ledger.expired(now):
            self.delete(tracked)

    def delete(self, tracked: Tracked) -> None:
        """Deletes a pod; it is due again later if that fails."""
        tracked.is_deleted = True
        if not self._errands.start(f"delete {tracked.uid}", partial(self._delete, tracked)):
            self._ledger.try_again(tracked, time.monotonic())

    def resize(self) -> None:
        """Changes what some running pod asks for; a filler only shrinks, so that another one finds room."""
        running = list(self._ledger.pods.values())
        for _ in range(_TRIES):
            tracked = self._random.choice(running) if running else None
            if tracked is None or not tracked.is_running or tracked.is_ending or tracked.kind not in {PLAIN, FILLER}:
                continue
            cpu = self._random.choice(_PLAIN_SIZES) if tracked.kind == PLAIN else _SHRUNK_FILLER
            self._errands.start(f"resize {tracked.uid}", partial(self._resize, tracked, cpu))
            return

    async def _create(self, creation: Creation) -> None:
        self._ledger.expect(creation.name, creation.kind, creation.fate, time.monotonic())
        try:
            status = await self._errands.send("POST", path_of("pods", namespace=NAMESPACE), creation.document)
        except UnreachableError:
            self._ledger.refused(creation.name)
            raise
        if status not in {_CREATED, NO_ANSWER}:
            self._ledger.refused(creation.name)

    async def _delete(self, tracked: Tracked) -> None:
        path = path_of("pods", tracked.name, namespace=NAMESPACE)
        try:
            status = await self._errands.send("DELETE", path, {"preconditions": {"uid": tracked.uid}})
        except UnreachableError:
            status = NO_ANSWER
        if status not in {*_OK, _GONE}:
            self._ledger.try_again(tracked, time.monotonic())

    async def _resize(self, tracked: Tracked, cpu: str) -> None:
        containers = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
        path = path_of("pods", tracked.name, "resize", namespace=NAMESPACE)
        if await self._errands.send("PATCH", path, {"spec": {"containers": containers}}, STRATEGIC_PATCH) in _OK:
            self._ledger.counts["resized"] += 1
