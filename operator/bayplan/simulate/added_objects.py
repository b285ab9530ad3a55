"""What is tried of nothing, though it was added: objects of unknown kinds with pods, and pods that name their node."""

from collections import Counter
from collections.abc import Iterable, Sequence
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


def refused_by_node(added: Iterable[PodInfo], nodes: Sequence[Node], pods: Sequence[PodInfo]) -> dict[str, str]:
    """Return which pods of `added`, all of them among `pods`, their node would not run, by UID, and why."""
    bound = {info.uid: info.pod.spec.node_name for info in added if not is_finished(info.pod)}
    taken = {name: Counter[str]() for name in bound.values() if name}
    for info in pods if taken else ():
        if info.pod.spec.node_name in taken and not is_finished(info.pod):
            taken[info.pod.spec.node_name].update({PODS: 1, **info.placed.amounts})
    reasons = {name: f"spec.nodeName: there is no node {name[:64]!a}" for name in taken}
    for node in nodes:
        if (amounts := taken.get(name := node.metadata.name)) is not None:
            room = node_allocatable(node)
            short = ", ".join(each for each, amount in amounts.items() if amount > room.get(each, 0))
            reasons[name] = f"spec.nodeName: node {name[:64]!a} has too little {short} for it" if short else ""
    return {uid: reasons[name] for uid, name in bound.items() if reasons.get(name)}
