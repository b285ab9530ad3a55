"""The order in which a limited search visits nodes: one of each zone in turn."""

from collections.abc import KeysView
from itertools import chain

from bayplan.api.objects import Node

_ZONE = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
_REGION = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")


class NodeTree:
    """Keeps the names of existing nodes zone by zone, each zone's in the order they came (upstream: node_tree.go).

    The node table writes it and sampling reads it. A zone comes after those that were there before it, and again when
    it was empty meanwhile; a node that moves to another zone is the last one there.
    """

    def __init__(self) -> None:
        self.version = 0
        """Grows when a node comes or goes, not when one moves to another zone."""
        self._zone_of: dict[str, str] = {}
        self._zones: dict[str, dict[str, None]] = {}

    def copy(self) -> "NodeTree":
        """Return a tree with the same names in the same order."""
        made = NodeTree()
        made.version, made._zone_of = self.version, self._zone_of.copy()
        made._zones = {zone: names.copy() for zone, names in self._zones.items()}
        return made

    def names(self) -> KeysView[str]:
        """Return the names of all nodes, as a set that follows the tree."""
        return self._zone_of.keys()

    def in_turn(self) -> list[str]:
        """Return all names: the first of every zone, then the second of every zone that has one, and so on."""
        # Not zip_longest: it would ask zones that have ended again for as long as the largest has names.
        rounds: list[list[str]] = []
        for names in self._zones.values():
            rounds.extend([] for _ in range(len(names) - len(rounds)))
            for names_of_round, name in zip(rounds, names, strict=False):
                names_of_round.append(name)
        return [*chain.from_iterable(rounds)]

    def set(self, node: Node) -> None:
        """Take in a new node, or one whose labels may be others now."""
        name, zone = node.metadata.name, _zone_key(node)
        before = self._zone_of.get(name)
        if before == zone:
            return
        if before is None:
            self.version += 1
        else:
            self._leave(name, before)
        self._zone_of[name] = zone
        self._zones.setdefault(zone, {})[name] = None

    def remove(self, name: str) -> None:
        """Forget a node."""
        self._leave(name, self._zone_of.pop(name))
        self.version += 1

    def _leave(self, name: str, zone: str) -> None:
        names = self._zones[zone]
        del names[name]
        if not names:
            del self._zones[zone]


def _zone_key(node: Node) -> str:
    """The region and the zone as one text (upstream: component-helpers/node/topology GetZoneKey)."""
    labels = node.metadata.labels
    if not labels:
        return ""
    zone, region = (next((labels[key] for key in keys if key in labels), "") for keys in (_ZONE, _REGION))
    return f"{region}:\0:{zone}" if region or zone else ""
