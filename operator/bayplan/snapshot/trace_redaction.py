"""A recorded trace that tells no names of labels, taints and types of nodes: it replays as the one that does."""

from collections.abc import Mapping
from typing import Final, TypeVar

from msgspec import structs

from bayplan.replay.trace import StrictTaint, StrictToleration, Trace, trace_of
from bayplan.snapshot.hashes import Hashes

_COMPARING: Final = frozenset({"Gt", "Lt"})
_Keyed = TypeVar("_Keyed", StrictTaint, StrictToleration)


def redacted(trace: Trace, key: bytes) -> Trace:
    """Return the trace with keyed hashes for keys and values of labels and taints, and numbers for names of pools.

    `bayplan trace record --redact` relies on it. What is equal stays equal, and what is compared as a number stays, so
    every pod fits where it did. Amounts and names of resources stay, as in a redacted snapshot. `key` is secret.
    """
    header = trace.header
    compared = {each.key for some in header.templates for each in some.tolerations if each.operator in _COMPARING}
    hashes = Hashes(key, numbers=compared)

    def labels(given: Mapping[str, str]) -> dict[str, str]:
        return {hashes.label_key(name): hashes.label_value(name, value) for name, value in given.items()}

    def hashed(given: _Keyed) -> _Keyed:
        value = hashes.label_value(given.key, given.value)
        return structs.replace(given, key=hashes.label_key(given.key), value=value)

    pools = [
        structs.replace(
            pool, name=f"pool-{number}", labels=labels(pool.labels), taints=[hashed(each) for each in pool.taints]
        )
        for number, pool in enumerate(header.pools, 1)
    ]
    templates = [
        structs.replace(
            each,
            node_selector=labels(each.node_selector),
            tolerations=[hashed(toleration) for toleration in each.tolerations],
        )
        for each in header.templates
    ]
    return trace_of(structs.replace(header, pools=pools, templates=templates), [*trace.pods])
