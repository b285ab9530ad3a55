"""Plays the part of kubelets that admit pods: who does not fit beside those that it runs fails with OutOfcpu."""

from collections import Counter
from collections.abc import Callable, Mapping

from e2e.controlplane.client import ApiClient, Object
from e2e.controlplane.turns import TurnTaker
from e2e.scenarios.outcomes import amount

_POLL_SECONDS = 0.1


class KubeletAdmission(TurnTaker):
    """The kubelets of all nodes, in a thread; `room` is the CPUs that each really has, by its name.

    A pod is admitted or rejected once, in the order in which it is seen on its node. A turn later `on_rejected` is
    called with each that was rejected. A ReplicaSet hears of it by a watch, too. A replacement that bayplan sees
    before its own watch told of the failure finds the node full.
    """

    def __init__(
        self, client: ApiClient, namespace: str, room: Mapping[str, int], on_rejected: Callable[[Object], None]
    ) -> None:
        super().__init__("kubelets", every_seconds=_POLL_SECONDS)
        self.admitted: Counter[str] = Counter()
        """CPUs of the pods that run, by node."""
        self.rejected: list[Object] = []
        self._client, self._namespace = client, namespace
        self._room, self._on_rejected = room, on_rejected
        self._seen: set[str] = set()
        self._told = 0

    def of_scheduler(self, name: str) -> list[Object]:
        """Returns the rejected pods that this scheduler placed."""
        return [pod for pod in self.rejected if pod["spec"]["schedulerName"] == name]

    def turn(self) -> None:
        """Admits or rejects the pods that came to their nodes."""
        while self._told < len(self.rejected):
            self._on_rejected(self.rejected[self._told])
            self._told += 1
        for pod in self._client.list("pods", self._namespace, fieldSelector="spec.nodeName!="):
            if pod["metadata"]["uid"] not in self._seen:
                self._seen.add(pod["metadata"]["uid"])
                self._admit(pod)

    def _admit(self, pod: Object) -> None:
        node = pod["spec"]["nodeName"]
        cpu = int(amount(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]))
        used = self.admitted[node]
        if used + cpu <= self._room[node]:
            self.admitted[node] += cpu
            status: Object = {"phase": "Running"}
        else:
            used, capacity = 1000 * used, 1000 * self._room[node]
            why = f"cpu, requested: {1000 * cpu}, used: {used}, capacity: {capacity}"
            message = f"Pod was rejected: Node didn't have enough resource: {why}"
            status = {"phase": "Failed", "reason": "OutOfcpu", "message": message}
        name = pod["metadata"]["name"]
        self._client.patch("pods", name, {"status": status}, namespace=self._namespace, subresource="status")
        if status["phase"] == "Failed":
            self.rejected.append(pod)
