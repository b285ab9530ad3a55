"""Why a filter rejects nodes, with the numbers and names: values that explanations are made of.

Filters tell their causes only when somebody asks for an explanation; Events and conditions have kube-scheduler's texts
from `FilterPlugin.reasons`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from bayplan.cache.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from bayplan.devices.device_counts import DeviceCount
from bayplan.shown_text import counted, natural_key, printable, shortened

LISTED: Final = 5
"""How many names of a list are told."""

LONGEST_NAME: Final = 60
"""Columns that one name or value takes in a text at most."""

LONGEST_TEXT: Final = 400
"""Characters of a plugin's own text that are kept."""

_BYTES: Final = (MEMORY, EPHEMERAL_STORAGE)
_UNITS: Final = ((2**50, "Pi"), (2**40, "Ti"), (2**30, "Gi"), (2**20, "Mi"), (2**10, "Ki"))


class Listed(msgspec.Struct, frozen=True, rename="camel"):
    """The first few of a list, and how many more it has; `unknown` is true where these were not counted."""

    first: tuple[str, ...] = ()
    more: int = 0
    unknown: bool = False

    def __str__(self) -> str:
        names = [shown(each) for each in self.first]
        if self.unknown:
            return f"{', '.join(names)} and more"
        if self.more:
            return f"{', '.join(names)} and {self.more:,} more"
        return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def listed(names: Iterable[str], count: int | None = None) -> Listed:
    """List the first of `names` in natural order; `count` is how many there are, if these are not all."""
    ordered = sorted(names, key=natural_key)
    first = tuple(ordered[:LISTED])
    return Listed(first, (len(ordered) if count is None else count) - len(first))


def shown(name: str) -> str:
    """Return `name` without anything a terminal would act on, in at most LONGEST_NAME columns."""
    return shortened(printable(name[: 2 * LONGEST_NAME]), LONGEST_NAME)


def quantity(resource: str, amount: int) -> str:
    """Write an amount of a resource as Kubernetes does: milli-CPU, bytes in the largest unit that is exact, or a count.

    Amounts of one resource are written in whole units, so nothing is rounded.
    """
    if resource == CPU:
        return f"{amount}m"
    if (resource in _BYTES or resource.startswith("hugepages-")) and amount:
        for size, unit in _UNITS:
            if amount % size == 0:
                return f"{amount // size}{unit}"
    return str(amount)


class Shortage(msgspec.Struct, frozen=True, rename="camel", tag="shortage", tag_field="kind"):
    """Less of a resource is free than the pod asks for; `pods` is the number of pods a node takes.

    `most_free` is on `node`, the first of the group's nodes with so much; it is below 0 on an overcommitted node. Where
    none of them has any of it, free or not, it is not `offered`.
    """

    resource: str
    asked: int
    most_free: int
    node: str
    offered: bool = True

    def __str__(self) -> str:
        if self.resource == PODS:
            return "pods, no node takes one more"
        if not self.offered:
            return (
                f"{shown(self.resource)}, asked {quantity(self.resource, self.asked)}, of which these nodes have none"
            )
        asked, free = quantity(self.resource, self.asked), quantity(self.resource, self.most_free)
        return f"{shown(self.resource)}, asked {asked}, most free {free} on {shown(self.node)}"


class UntoleratedTaint(msgspec.Struct, frozen=True, rename="camel", tag="taint", tag_field="kind"):
    """A taint that the pod does not tolerate."""

    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        value = f"={shown(self.value)}" if self.value else ""
        return f"taint {shown(self.key)}{value}:{shown(self.effect)} not tolerated"


class LabelMismatch(msgspec.Struct, frozen=True, rename="camel", tag="label", tag_field="kind"):
    """A label that the pod asks of its node: which `asked` values by which `operator`, and the values that nodes have.

    `there_are` are the values on all nodes of the cluster; the group's nodes have another one, or `lack` the label.
    """

    key: str
    operator: str
    asked: Listed
    there_are: Listed
    lack: bool = False

    def __str__(self) -> str:
        asked = f"{shown(self.key)} {shown(self.operator)} {self.asked}".rstrip()
        if not self.there_are.first:
            return f"label {asked} asked, no node has it"
        here = "but these nodes lack the label" if self.lack else "but on these nodes none that fits"
        return f"label {asked} asked; values in the cluster: {self.there_are}, {here}"


class Pinned(msgspec.Struct, frozen=True, rename="camel", tag="pinned", tag_field="kind"):
    """The only nodes that the pod may go to, as the node affinity of a DaemonSet's pod names one."""

    to: Listed

    def __str__(self) -> str:
        return f"pinned to {self.to}"


class PortsTaken(msgspec.Struct, frozen=True, rename="camel", tag="ports", tag_field="kind"):
    """Host ports the pod wants, as port/protocol, and pods that have them: as namespace/name on node."""

    ports: Listed
    pods: Listed

    def __str__(self) -> str:
        return f"host port {self.ports} taken by {self.pods}"


class BlockingPods(msgspec.Struct, frozen=True, rename="camel", tag="antiAffinity", tag_field="kind"):
    """Pods that anti-affinity keeps the pod away from, by its own terms or (`theirs`) by those of the others.

    The pods are those in the domain `value` of `topology_key`, the first one found; others block `more_domains`, in
    which the rest of the group's nodes are.
    """

    theirs: bool
    topology_key: str
    value: str
    pods: Listed
    more_domains: int = 0

    def __str__(self) -> str:
        whose = "their" if self.theirs else "its"
        more = f"; likewise in {counted(self.more_domains, 'more domain')}" if self.more_domains else ""
        return f"{whose} anti-affinity in {shown(self.topology_key)}={shown(self.value)}, blocked by {self.pods}{more}"


class AffinityUnmet(msgspec.Struct, frozen=True, rename="camel", tag="affinity", tag_field="kind"):
    """No pod is there that the pod must be near, in the domains of `topology_keys`."""

    topology_keys: Listed

    def __str__(self) -> str:
        return f"affinity, no matching pod in the same {self.topology_keys}"


class Skew(msgspec.Struct, frozen=True, rename="camel", tag="skew", tag_field="kind"):
    """A spread constraint that domains would break; `pods` match in the domain `value`, `fewest` in the emptiest.

    `value` is the one with the fewest pods of the group's domains, of which there are `domains`; in the fullest of
    these `most_pods` match. The pod itself counts for `skew`. With `min_domains` there are only `known_domains`, fewer
    than the constraint asks for, so that the emptiest counts as empty.
    """

    topology_key: str
    value: str
    domains: int
    pods: int
    fewest: int
    skew: int
    max_skew: int
    most_pods: int
    min_domains: int = 0
    known_domains: int = 0

    def __str__(self) -> str:
        emptiest = f"the emptiest {self.fewest}"
        if self.min_domains:
            emptiest = f"the emptiest counts as 0 with {self.known_domains:,} of {self.min_domains:,} minDomains"
        skew = f"{self.skew} or more" if self.most_pods > self.pods else f"{self.skew}"
        return (
            f"spread over {shown(self.topology_key)}, {self._fullness()}, {emptiest}: "
            f"skew {skew}, allowed {self.max_skew}"
        )

    def _fullness(self) -> str:
        """Say which domains there are and how many pods they have."""
        pods = counted(self.most_pods, "pod")
        if self.domains == 1:
            return f"{shown(self.value)} has {pods}"
        if self.pods == self.most_pods:
            return f"{shown(self.value)} and {self.domains - 1:,} more have {pods} each"
        return f"{shown(self.value)} and {self.domains - 1:,} more have {self.pods} to {pods}"


class LabelMissing(msgspec.Struct, frozen=True, rename="camel", tag="noTopologyKey", tag_field="kind"):
    """The nodes lack a topology key that a spread constraint needs."""

    topology_key: str

    def __str__(self) -> str:
        return f"spread over {shown(self.topology_key)}, a label that the nodes lack"


class Cordoned(msgspec.Struct, frozen=True, rename="camel", tag="cordoned", tag_field="kind"):
    """The nodes are closed for new pods."""

    def __str__(self) -> str:
        return "node(s) were unschedulable"


class DeviceShortage(DeviceCount, frozen=True, tag="devices", tag_field="kind"):
    """A request of a claim could have fewer devices than it asks for; `node` is the one with most of them.

    Of the devices `offered` there, the class and the request select some, of which some are free. `refused_by` is the
    selector that takes fewest of the others. `unusable_pool` is a pool there, of any
    driver, that nothing is taken from, and `pool_state` why.
    """

    node: str

    def __str__(self) -> str:
        asked = (
            f"claim {shown(self.claim)}, request {shown(self.request)}: asked {self.asked} {shown(self.device_class)}"
        )
        pool = f"; pools are {self.pool_state}, such as {shown(self.unusable_pool)}" if self.unusable_pool else ""
        if not self.offered:
            return f"{asked}, no devices here{pool}"
        refuses = self.refused_by and self.selected < self.asked
        refused_by = f"; others refused by {shown(self.refused_by)}" if refuses else ""
        devices = f"{counted(self.offered, 'device')}, {self.selected} selected"
        return f"{asked}, most free {self.free} on {shown(self.node)} ({devices}{refused_by}){pool}"


class Told(msgspec.Struct, frozen=True, rename="camel", tag="told", tag_field="kind"):
    """What a plugin says in its own words, cut to LONGEST_TEXT."""

    text: str

    def __str__(self) -> str:
        return printable(self.text)


Cause = (
    Shortage
    | UntoleratedTaint
    | LabelMismatch
    | LabelMissing
    | Pinned
    | PortsTaken
    | BlockingPods
    | AffinityUnmet
    | Skew
    | Cordoned
    | DeviceShortage
    | Told
)


def told(text: str) -> Told:
    """Keep a plugin's own text."""
    return Told(shortened(text, LONGEST_TEXT))


@dataclass(frozen=True, slots=True)
class Detail:
    """One cause and which of the rows asked about it holds for, `(rows,) bool`.

    `tell` is given places among these rows, `(some,) intp` and never empty, and says the cause for those alone.
    """

    holds: NDArray[np.bool_]
    tell: Callable[[NDArray[np.intp]], Cause]


def same_for_all(holds: NDArray[np.bool_], cause: Cause) -> Detail:
    """Return a detail whose cause is the same for whichever rows it `holds`."""
    return Detail(holds, lambda _: cause)


def first_found(names: Iterable[str]) -> Listed:
    """List the first that come, in natural order, without looking at more than one further."""
    found = list(islice(names, LISTED + 1))
    return Listed(tuple(sorted(found[:LISTED], key=natural_key)), unknown=len(found) > LISTED)
