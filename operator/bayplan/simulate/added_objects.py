"""What is tried of nothing, though it was added: objects of unknown kinds with pods, and pods that name their node."""

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from typing import Any

import msgspec

from bayplan.api.objects import Node
from bayplan.cache.cache import is_finished
from bayplan.cache.pod_info import PodInfo
from bayplan.cache.resources import PODS, node_allocatable


def holds_template(value: Any) -> bool:  # noqa: ANN401 - a value of a file is anything
    """Whether an object, or what is in it, has a template of pods: it would make some."""
    if isinstance(value, msgspec.Raw):
        value = msgspec.json.decode(value)
    if isinstance(value, list):
        return any(map(holds_template, value))
    return isinstance(value, dict) and any(
        (str(key).lower().endswith("template") and _has_containers(inner)) or holds_template(inner)
        for key, inner in value.items()
    )


def _has_containers(template: object) -> bool:
    spec = template.get("spec") if isinstance(template, dict) else None
    return isinstance(spec, dict) and isinstance(spec.get("containers"), list)


def refused_by_node(
    uids: Container[str], nodes: Sequence[Node], pods: Sequence[PodInfo]
) -> Iterator[tuple[PodInfo, str]]:
    """Yield those of `pods` with these UIDs whose node is not there or has no room for them, and the reason."""
    by_name = {node.metadata.name: node for node in nodes}
    bound = [info for info in pods if info.uid in uids and not is_finished(info.pod)]
    taken: dict[str, Counter[str]] = {info.pod.spec.node_name: Counter() for info in bound}
    for info in pods if bound else ():
        amounts = taken.get(info.pod.spec.node_name)
        if amounts is not None and not is_finished(info.pod):
            amounts.update({PODS: 1, **info.placed.amounts})
    for info in bound:
        name = info.pod.spec.node_name
        node = by_name.get(name)
        if node is None:
            yield info, f"spec.nodeName: there is no node {name[:64]!a}"
            continue
        room = node_allocatable(node)
        short = [each for each in (PODS, *info.placed.amounts) if taken[name][each] > room.get(each, 0)]
        if short:
            yield info, f"spec.nodeName: node {name[:64]!a} has too little {', '.join(short)} for it"
