"""A search for feasible nodes as kube-scheduler's one worker does it, node by node."""

from dataclasses import dataclass, field

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"


@dataclass
class ReferenceTree:
    """Nodes by zone, in lists (backend/cache/node_tree.go); `listed` is what the last snapshot holds."""

    zones: list[tuple[str, list[str]]] = field(default_factory=list)
    zone_of: dict[str, str] = field(default_factory=dict)
    listed: list[str] = field(default_factory=list)

    def set(self, name, labels):
        zone = f"{labels.get(REGION, '')}/{labels.get(ZONE, '')}"
        if self.zone_of.get(name) == zone:
            return
        if name in self.zone_of:
            self.remove(name)
        self.zone_of[name] = zone
        for known, names in self.zones:
            if known == zone:
                names.append(name)
                return
        self.zones.append((zone, [name]))

    def remove(self, name):
        zone = self.zone_of.pop(name)
        for known, names in self.zones:
            if known == zone:
                names.remove(name)
        self.zones = [(known, names) for known, names in self.zones if names]

    def snapshot(self):
        """The nodes in the order of a search; read anew only when a node came or went since the last time."""
        if set(self.listed) != set(self.zone_of):
            longest = max((len(names) for _, names in self.zones), default=0)
            self.listed = [names[i] for i in range(longest) for _, names in self.zones if i < len(names)]
        return self.listed


@dataclass
class ReferenceSearch:
    """Upstream: schedule_one.go findNodesThatFitPod and findNodesThatPassFilters."""

    next_start: int = 0

    def find(self, everywhere, candidates, fits, enough, nominated=None):
        """The nodes found among `candidates`, both in order; the search ends when one more than `enough` is found."""
        told = set()
        if nominated is not None:
            if fits(nominated):
                return [nominated]
            told.add(nominated)
        found = []
        for i in range(len(candidates)):
            name = candidates[(self.next_start + i) % len(candidates)]
            if not fits(name):
                told.add(name)
            elif len(found) == enough:
                break
            else:
                found.append(name)
        self.next_start = (self.next_start + len(found) + len(told)) % len(everywhere)
        return found
