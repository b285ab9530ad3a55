"""The kubelets of all nodes: pods run, resizes are carried out, and pods that were told to end do so."""

from functools import partial

from e2e.controlplane.client import Object, path_of
from e2e.soak.errands import STRATEGIC_PATCH, Errands
from e2e.soak.ledger import Ledger, Tracked
from e2e.soak.workload import NAMESPACE


def running_status(tracked: Tracked) -> Object:
    """Returns the status patch of a pod that runs with all that its containers ask for now."""
    conditions = [{"type": kind, "status": "True"} for kind in ("Initialized", "ContainersReady", "Ready")]
    return {
        "metadata": {"uid": tracked.uid},
        "status": {
            "phase": "Running",
            "conditions": conditions,
            "containerStatuses": [_container_status(name, dict(requests)) for name, requests in tracked.requests],
        },
    }


def _container_status(name: str, requests: dict[str, str]) -> Object:
    return {
        "name": name,
        "image": "",
        "imageID": "",
        "ready": True,
        "restartCount": 0,
        "started": True,
        "allocatedResources": requests,
        "resources": {"requests": requests},
    }


class Kubelets:
    """Begins what kubelets have to do; what fails is still to be done at the next turn."""

    def __init__(self, ledger: Ledger, errands: Errands) -> None:
        self._ledger = ledger
        self._errands = errands

    def turn(self) -> None:
        """Reports every pod that has something to report, and ends those that are to end."""
        for uid, tracked in list(self._ledger.to_report.items()):
            self._errands.start(f"report {uid}", partial(self._report, tracked))
        for uid, tracked in list(self._ledger.to_end.items()):
            self._errands.start(f"end {uid}", partial(self._end, tracked))

    async def _report(self, tracked: Tracked) -> None:
        path = path_of("pods", tracked.name, "status", namespace=NAMESPACE)
        await self._errands.send("PATCH", path, running_status(tracked), STRATEGIC_PATCH)

    async def _end(self, tracked: Tracked) -> None:
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": tracked.uid}}
        await self._errands.send("DELETE", path_of("pods", tracked.name, namespace=NAMESPACE), options)
