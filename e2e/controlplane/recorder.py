"""A witness of everything that happens to pods, from a watch that starts before the scenario."""

import itertools
import json
import logging
import threading
import time
from dataclasses import dataclass, replace
from http.client import HTTPException, HTTPSConnection
from types import TracebackType
from typing import Self

from e2e.controlplane.client import ApiClient, ApiError, Object, cut_off, path_of
from e2e.controlplane.objects import pod
from e2e.controlplane.waiting import wait_until

logger = logging.getLogger(__name__)

_RECONNECT_SECONDS = 0.2
_MARKER = "recorder-marker"
_MARKER_NAMESPACE = "default"


@dataclass(frozen=True, slots=True)
class PodEvent:
    """One watch event; `arrived` is monotonic seconds, `node` is empty before the binding.

    `reason` is that of the condition PodScheduled, where there is one.
    """

    type: str
    resource_version: int
    uid: str
    key: str
    node: str
    phase: str
    deleting: bool
    arrived: float
    reason: str = ""


class PodRecorder:
    """Records every event of every pod from its start on, in order.

    A broken watch continues at the last resourceVersion seen. Where the API server no longer knows that one
    (it forgets its history when it restarts) a list closes the gap, as MODIFIED and DELETED events of what
    it shows, and `gaps` counts it: the states are still true, only what came between them is unknown.
    """

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._version = client.resource_version("pods")
        self._events: list[PodEvent] = []
        self._live: dict[str, PodEvent] = {}
        self.gaps = 0
        self._markers = itertools.count()
        self._ended_markers: set[str] = set()
        self._deleted_markers: set[str] = set()
        self._failure: Exception | None = None
        self._stopping = threading.Event()
        self._connection: HTTPSConnection | None = None
        self._thread = threading.Thread(target=self._run, name="pod-recorder", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends the watch."""
        self._stopping.set()
        cut_off(self._connection)
        self._thread.join(10)

    @property
    def events(self) -> list[PodEvent]:
        """All events so far, in the order of the watch.

        Raises:
            ApiError: the API server could not let the admin watch pods.
        """
        if self._failure is not None:
            raise self._failure
        return list(self._events)

    def catch_up(self) -> list[PodEvent]:
        """Waits until the record holds all that happened to pods before this call, and returns it.

        A marker pod no scheduler takes is created and removed; when its end is seen, so is all before it.
        """
        marker = f"{_MARKER}-{next(self._markers)}"
        self._client.create("pods", pod(marker, _MARKER_NAMESPACE, scheduler=_MARKER))
        self._client.delete("pods", marker, namespace=_MARKER_NAMESPACE, grace_seconds=0)
        self._deleted_markers.add(marker)

        def reached() -> bool:
            if self._failure is not None:
                raise self._failure
            return marker in self._ended_markers

        wait_until(reached, "the record catching up")
        return self.events

    def nodes_by_uid(self) -> dict[str, list[str]]:
        """Returns the nodes each pod was seen on, in order and without repeats; unbound pods have none.

        A pod that was bound exactly once has exactly one.
        """
        nodes: dict[str, list[str]] = {}
        for event in self.events:
            seen = nodes.setdefault(event.uid, [])
            if event.node and (not seen or seen[-1] != event.node):
                seen.append(event.node)
        return nodes

    def bound_at(self) -> dict[str, float]:
        """Returns when the first event with a node of each pod arrived, by key, in monotonic seconds."""
        times: dict[str, float] = {}
        for event in self.events:
            if event.node:
                times.setdefault(event.key, event.arrived)
        return times

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._watch()
            except ApiError as error:
                if error.status != 410:
                    self._failure = error
                    return
                self._close_gap()
            except (OSError, HTTPException, ValueError) as error:
                # The API server is away, or the line was cut: continue from the last event.
                logger.debug("pod watch broke off error=%r", error)
            self._stopping.wait(_RECONNECT_SECONDS)

    def _watch(self) -> None:
        query = f"watch=1&allowWatchBookmarks=true&timeoutSeconds=3600&resourceVersion={self._version}"
        connection = self._connection = self._client.connect(timeout_seconds=4000)
        try:
            response = self._client.send(connection, f"{path_of('pods')}?{query}")
            if response.status != 200:
                message = response.read().decode(errors="replace")
                if response.status in (429, 500, 503):
                    raise OSError(message)
                raise ApiError(response.status, "watch", message)
            for line in response:
                self._record(json.loads(line))
        finally:
            connection.close()

    def _record(self, event: Object) -> None:
        document = event["object"]
        if event["type"] == "ERROR":
            raise ApiError(document.get("code", 0), "watch", str(document.get("message")))
        metadata = document["metadata"]
        self._version = metadata["resourceVersion"]
        if event["type"] == "BOOKMARK":
            return
        if metadata["name"].startswith(_MARKER):
            if event["type"] == "DELETED":
                self._ended_markers.add(metadata["name"])
            return
        self._append(event["type"], document)

    def _append(self, kind: str, document: Object) -> None:
        metadata = document["metadata"]
        event = PodEvent(
            type=kind,
            resource_version=int(metadata["resourceVersion"]),
            uid=metadata["uid"],
            key=f"{metadata['namespace']}/{metadata['name']}",
            node=document["spec"].get("nodeName", ""),
            phase=document.get("status", {}).get("phase", ""),
            deleting="deletionTimestamp" in metadata,
            arrived=time.monotonic(),
            reason=_reason(document),
        )
        self._events.append(event)
        if kind == "DELETED":
            self._live.pop(event.uid, None)
        else:
            self._live[event.uid] = event

    def _close_gap(self) -> None:
        deleted_markers = set(self._deleted_markers)
        try:
            reply = self._client.request("GET", path_of("pods"))
        except (ApiError, OSError, HTTPException) as error:
            logger.debug("list after a gap failed error=%r", error)
            return  # the watch fails again and brings us back here
        self.gaps += 1
        pods = [found for found in reply["items"] if not found["metadata"]["name"].startswith(_MARKER)]
        present = {found["metadata"]["uid"] for found in pods}
        for uid, last in list(self._live.items()):
            if uid not in present:
                del self._live[uid]
                self._events.append(replace(last, type="DELETED", arrived=time.monotonic()))
        for found in pods:
            self._append("MODIFIED", found)
        self._version = reply["metadata"]["resourceVersion"]
        self._ended_markers |= deleted_markers


def _reason(document: Object) -> str:
    conditions: list[Object] = document.get("status", {}).get("conditions") or []
    return next((str(each.get("reason", "")) for each in conditions if each["type"] == "PodScheduled"), "")
