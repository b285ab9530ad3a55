"""All slices of the cluster by pool, node and selector, to find the pools of a node quickly, and alike nodes.

Source: D/structured/internal/incubating/pools_incubating.go, GatherPools.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from bayplan.api.device_objects import Device, DeviceTaintRule, ResourceSlice
from bayplan.api.objects import Node, NodeSelector
from bayplan.api.selectors import NodeSelectorMatcher, compile_node_selector
from bayplan.devices.allocated_state import AllocatedState, PoolId
from bayplan.devices.offers import Kinds, Offer, Reads, SliceOffers, rules_for
from bayplan.devices.pools import UPDATING_STATE, NodePools, Pool, PoolView

_MAX_VIEWS: Final = 256
_MAX_NODES: Final = 20_000


class PoolIndex:
    """All slices of the cluster, to look up the pools of a node quickly; what is unchanged is kept from `previous`."""

    def __init__(
        self, slices: Iterable[ResourceSlice], rules: Iterable[DeviceTaintRule], previous: "PoolIndex | None"
    ) -> None:
        rules = tuple(rules)
        self.offers: dict[str, SliceOffers] = {}
        self._by_pool: dict[PoolId, list[SliceOffers]] = defaultdict(list)
        self._on_node: dict[str, list[SliceOffers]] = defaultdict(list)
        self._shared: list[SliceOffers] = []
        self._counting: set[PoolId] = set()
        """The pools of which a device consumes counters."""
        self._chooses = False
        """Whether a slice leaves it to each device which nodes it is for."""
        self.nodes_of: dict[PoolId, set[str]] = defaultdict(set)
        """The nodes that have devices of a pool; "" among them if that is said otherwise than by their names."""
        self._selectors: dict[bytes, NodeSelectorMatcher] = {}
        self._views: dict[frozenset[bytes], PoolView] = {}
        self.pools: dict[PoolId, tuple[list[SliceOffers], dict[Hashable, Pool | None]]] = {}
        self._pools_before = previous.pools if previous is not None else {}
        self._nodes: dict[str, tuple[dict[str, str] | None, NodePools]] = {}
        self.selector_error = ""
        for wire in slices:
            concerned = rules_for(rules, wire.spec.driver, wire.spec.pool.name) if rules else ()
            known = previous.offers.get(wire.metadata.name) if previous is not None else None
            if known is None or known.wire is not wire or known.rules != concerned:
                known = SliceOffers(wire, concerned)
            self.offers[known.name] = known
            self._by_pool[known.pool].append(known)
            self.nodes_of[known.pool].add(wire.spec.node_name or "")
            if known.counts:
                self._counting.add(known.pool)
            self._place(known)

    def pools_of(self, node: Node) -> NodePools:
        """The pools with devices for the node."""
        name, labels = node.metadata.name, node.metadata.labels
        known = self._nodes.get(name)
        if known is None or known[0] != labels:
            if len(self._nodes) >= _MAX_NODES:
                self._nodes.clear()
            known = self._nodes[name] = labels, self._gather(name, labels)
        return known[1]

    def whole_pools(self) -> Iterator[Pool]:
        """Return each pool with all its slices, for whatever nodes they are."""
        for pool, slices in self._by_pool.items():
            if (known := self._resolve(pool, slices)) is not None:
                yield known

    def is_overdrawn(self, pool: PoolId, device: str, allocated: AllocatedState) -> bool:
        """Whether a device, or what it takes part of, was given away beyond what there is: claims are looked at by it.

        Of a pool that is being updated, or that is invalid, it is only known who has the whole device.
        """
        usage = allocated.usage(pool)
        taken = usage.get(device)
        if taken is None or not (taken.shares or pool in self._counting):
            return taken is not None and taken.holders > 1
        known = self._resolve(pool, slices) if (slices := self._by_pool.get(pool)) else None
        return taken.holders + bool(taken.shares) > 1 or (known is not None and known.is_overdrawn(device, usage))

    def device_is_for(self, offer: Offer, node: Node) -> bool:
        """Whether a device is for the node, where its slice leaves that to each device."""
        device = offer.wire
        if not offer.slice.spec.per_device_node_selection:
            return True
        if device.node_name or device.all_nodes:
            return not device.node_name or device.node_name == node.metadata.name
        if device.node_selector is None:
            return False
        matcher = self._selectors[msgspec.msgpack.encode(device.node_selector)]
        return matcher.matches(node.metadata.labels, node.metadata.name)

    def _place(self, each: SliceOffers) -> None:
        if each.ignored:
            return
        self._chooses |= bool(each.spec.per_device_node_selection)
        for where in each.where:
            if where.node_name:
                if each not in self._on_node[where.node_name][-1:]:
                    self._on_node[where.node_name].append(each)
            elif where.node_selector is not None and not where.all_nodes:
                device = f"device {where.name} in " if isinstance(where, Device) else ""
                self._compile(where.node_selector, f"{device}slice {each.name}")
        if not all(where.node_name for where in each.where):
            self._shared.append(each)

    def _compile(self, selector: NodeSelector, what: str) -> None:
        key = msgspec.msgpack.encode(selector)
        if key not in self._selectors:
            self._selectors[key] = matcher = compile_node_selector(selector)
            if matcher.errors and not self.selector_error:
                self.selector_error = (
                    f"gather pool information: failed to perform node selection for {what}: "
                    f"failed to parse node selector: {matcher.errors[0]}"
                )

    def _gather(self, name: str, labels: Mapping[str, str] | None) -> NodePools:
        matched = frozenset(key for key, each in self._selectors.items() if each.matches(labels, name))
        view = self._view(matched)
        own: dict[PoolId, list[SliceOffers]] = defaultdict(list)
        for each in self._on_node.get(name, ()):
            own[each.pool].append(each)
        for pool, slices in own.items():
            shared = view.by_id[pool][0] if pool in view.by_id else ()
            slices += [each for each in shared if each not in slices]
        is_named = any(not each.spec.node_name for each in self._on_node.get(name, ()))
        chosen = (matched, name if is_named else "") if self._chooses else ()
        return NodePools(view, {pool: self._resolve(pool, slices) for pool, slices in own.items()}, chosen)

    def _view(self, matched: frozenset[bytes]) -> PoolView:
        known = self._views.get(matched)
        if known is None:
            by_pool: dict[PoolId, list[SliceOffers]] = defaultdict(list)
            for each in self._shared:
                if _is_for(each, matched):
                    by_pool[each.pool].append(each)
            if len(self._views) >= _MAX_VIEWS:
                self._views.clear()
            known = PoolView({pool: (slices, self._resolve(pool, slices)) for pool, slices in by_pool.items()})
            self._views[matched] = known
        return known

    def _resolve(self, pool: PoolId, slices: Sequence[SliceOffers]) -> Pool | None:
        """The pool of these slices; None when a later generation replaces it. It is kept as long as its slices are."""
        everywhere = self._by_pool[pool]
        known = self.pools.get(pool)
        if known is None:
            before = self._pools_before.get(pool)
            known = self.pools[pool] = before if before is not None and before[0] == everywhere else (everywhere, {})
        made, key = known[1], tuple(slices)
        if key not in made:
            if len(made) >= _MAX_NODES:
                made.clear()
            made[key] = self._made(pool, slices)
        return made[key]

    def _made(self, pool: PoolId, slices: Sequence[SliceOffers]) -> Pool | None:
        generation = max(each.spec.pool.generation for each in slices)
        relevant = [each for each in slices if each.spec.pool.generation == generation]
        count = relevant[0].spec.pool.resource_slice_count
        if len(relevant) == count:
            return Pool(pool, relevant)
        everywhere = self._by_pool[pool]
        if any(each.spec.pool.generation > generation for each in everywhere):
            return None
        whole = [each for each in everywhere if each.spec.pool.generation == generation and not each.ignored]
        if len(whole) == count:
            return Pool(pool, relevant, whole)
        return Pool(pool, relevant, state=UPDATING_STATE)


class NodeKinds:
    """Numbers nodes by what searches with these `reads` depend on; the allocator relies on it.

    Nodes with the same number are answered alike. An attempt begins with `follow`.
    """

    def __init__(self, index: PoolIndex, reads: Reads, kinds: Kinds, allocated: AllocatedState) -> None:
        self._index = index
        self._reads = reads
        self._kinds = kinds
        self._allocated = allocated
        self._latest = allocated.latest
        self._nodes: dict[str, Node] = {}
        """Those of which the number is known, by name."""
        self._numbers: dict[int, int] = {}
        """By the identities of these, so that all nodes are looked up without a step of the interpreter for each."""

    def follow(self) -> None:
        """Forget the nodes of pools of which something was taken or given back since the last call."""
        changed = self._allocated.changed_since(self._latest)
        self._latest = self._allocated.latest
        names = {name for pool in changed or () for name in self._index.nodes_of.get(pool, ())}
        if changed is None or "" in names or len(self._nodes) > _MAX_NODES:
            self._nodes.clear()
            self._numbers.clear()
        else:
            for name in names:
                self._forget(name)

    def known(self, nodes: Sequence[Node]) -> list[int | None]:
        """Return the number of each node, in order; None where it is not known, or the node was replaced since."""
        return list(map(self._numbers.get, map(id, nodes)))

    def find(self, node: Node) -> int:
        """Find out the number of a node."""
        self._forget(node.metadata.name)
        content = self._index.pools_of(node).kind(self._reads, self._kinds, self._allocated)
        self._nodes[node.metadata.name] = node
        number = self._numbers[id(node)] = self._kinds.number(content)
        return number

    def _forget(self, name: str) -> None:
        node = self._nodes.pop(name, None)
        if node is not None:
            del self._numbers[id(node)]


def _is_for(each: SliceOffers, matched: frozenset[bytes]) -> bool:
    """Whether a slice is for nodes which these selectors match, whatever their names."""
    unnamed = [where for where in each.where if not where.node_name]
    return any(where.all_nodes for where in unnamed) or any(
        where.node_selector is not None and msgspec.msgpack.encode(where.node_selector) in matched for where in unnamed
    )
