"""What pods take on nodes, added up exactly, without the scheduler's code."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from kubernetes.utils import parse_quantity

from e2e.soak.seen import SeenPod


@dataclass(frozen=True, slots=True)
class Amounts:
    """Milli-CPU, bytes of memory and a number of pods."""

    cpu: int = 0
    memory: int = 0
    pods: int = 0

    def __add__(self, other: "Amounts") -> "Amounts":
        return Amounts(self.cpu + other.cpu, self.memory + other.memory, self.pods + other.pods)

    def __sub__(self, other: "Amounts") -> "Amounts":
        return Amounts(self.cpu - other.cpu, self.memory - other.memory, self.pods - other.pods)

    def fits_in(self, room: "Amounts") -> bool:
        return self.cpu <= room.cpu and self.memory <= room.memory and self.pods <= room.pods


@lru_cache(maxsize=4096)
def milli_cpu(quantity: str) -> int:
    """A quantity in thousandths, rounded up as the scheduler has to."""
    amount: int = math.ceil(parse_quantity(quantity) * 1000)
    return amount


@lru_cache(maxsize=4096)
def whole_bytes(quantity: str) -> int:
    """A quantity in whole bytes, rounded up."""
    amount: int = math.ceil(parse_quantity(quantity))
    return amount


def amounts_of(pod: SeenPod) -> Amounts:
    """What a pod takes on a node: of what its spec asks for and its kubelet has allocated the larger, by container."""
    allocated = pod.allocated
    cpu = memory = 0
    for container in pod.spec.containers:
        asked, given = container.requests, allocated.get(container.name, {})
        cpu += max(milli_cpu(asked.get("cpu", "0")), milli_cpu(given.get("cpu", "0")))
        memory += max(whole_bytes(asked.get("memory", "0")), whole_bytes(given.get("memory", "0")))
    return Amounts(cpu, memory, 1)


class Room:
    """What is taken on each node; `allocatable` says what a node has, None for one that nobody made."""

    def __init__(self, allocatable: Callable[[str], Amounts | None]) -> None:
        self._allocatable = allocatable
        self._held: dict[str, tuple[str, Amounts]] = {}
        self._taken: dict[str, Amounts] = {}

    def put(self, uid: str, node: str, amounts: Amounts) -> None:
        """Counts a pod on a node, with what it takes now."""
        if self._held.get(uid) == (node, amounts):
            return
        self.remove(uid)
        self._held[uid] = node, amounts
        self._taken[node] = self._taken.get(node, Amounts()) + amounts

    def remove(self, uid: str) -> None:
        """Counts a pod nowhere."""
        held = self._held.pop(uid, None)
        if held is not None:
            node, amounts = held
            self._taken[node] -= amounts

    def free(self, node: str) -> Amounts:
        """What is left of a node; negative where it is over-committed."""
        return (self._allocatable(node) or Amounts()) - self._taken.get(node, Amounts())

    def is_overfull(self, node: str) -> bool:
        """Whether the pods of a node take more than it has."""
        return not Amounts().fits_in(self.free(node))

    def nodes(self) -> list[str]:
        """The nodes that hold pods."""
        return [node for node, taken in self._taken.items() if taken.pods]
