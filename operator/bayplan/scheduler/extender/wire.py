"""Encodes calls to extenders and decodes their answers: JSON of kube-scheduler's extender/v1."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from bayplan.api.errors import DECODE_ERRORS
from bayplan.api.objects import Node
from bayplan.cache.pod_info import PodInfo
from bayplan.config.connections import Extender
from bayplan.framework.candidate import Candidate
from bayplan.framework.interface import MAX_NODE_SCORE, Binding
from bayplan.framework.runtime import EXTENDER
from bayplan.framework.status import Code, Status

_MAX_EXTENDER_PRIORITY: Final = 10
# Go's sums wrap around; no honest score comes near this.
_MAX_SCORE: Final = 2**53


class ExtenderError(Exception):
    """An extender could not be called, or its answer is wrong; the text is kube-scheduler's where it has one."""


@dataclass(frozen=True, slots=True)
class FilterAnswer:
    """The nodes an extender leaves, and its verdicts on others, by name."""

    names: tuple[str, ...]
    verdicts: Mapping[str, Status]


@dataclass(frozen=True, slots=True)
class ProposedVictims:
    """Whom an extender would evict on one node, the most important pod first, by UID."""

    uids: tuple[str, ...]
    pdb_violations: int


def is_interested(extender: Extender, pod: PodInfo) -> bool:
    """Whether the extender is called for the pod (upstream: extender.go IsInterested)."""
    if not extender.managed_resources:
        return True
    managed = {resource.name for resource in extender.managed_resources}
    for container in (*pod.pod.spec.containers, *(pod.pod.spec.init_containers or ())):
        resources = container.resources
        if resources is None:
            continue
        if not managed.isdisjoint(resources.requests or ()) or not managed.isdisjoint(resources.limits or ()):
            return True
    return False


def extender_args(extender: Extender, pod: msgspec.Raw, nodes: Sequence[Node]) -> bytes:
    """The body of a filter or prioritize call: nodes by name for extenders that keep their own, else whole.

    `pod` is the pod as the API server gives it.
    """
    names = [node.metadata.name for node in nodes]
    capable = extender.node_cache_capable
    return msgspec.json.encode(
        {
            "Pod": pod,
            "Nodes": None if capable else {"metadata": {}, "items": nodes},
            "NodeNames": names if capable else None,
        }
    )


def binding_args(binding: Binding) -> bytes:
    """The body of a bind call."""
    return msgspec.json.encode(
        {
            "PodName": binding.name,
            "PodNamespace": binding.namespace,
            "PodUID": binding.uid,
            "Node": binding.node_name,
        }
    )


def preemption_args(extender: Extender, pod: msgspec.Raw, candidates: Sequence[Candidate]) -> bytes:
    """The body of a preempt call: victims by UID for extenders that keep their own nodes, else with their pods."""
    capable = extender.node_cache_capable
    victims = {
        each.node_name: {
            "Pods": [{"UID": victim.uid} if capable else victim.pod for victim in each.victims],
            "NumPDBViolations": each.pdb_violations,
        }
        for each in candidates
    }
    return msgspec.json.encode(
        {
            "Pod": pod,
            "NodeNameToVictims": None if capable else victims,
            "NodeNameToMetaVictims": victims if capable else None,
        }
    )


def read_preemption_answer(body: bytes) -> dict[str, ProposedVictims]:
    """The victims a preempt call proposed, by node; pods are named by UID, whichever form the call had.

    Raises:
        ExtenderError: the answer is not an object of victims.
    """
    proposed = {}
    for name, given in (_field(_object(body), "nodenametometavictims", dict) or {}).items():
        victims = _lower(given, "a node's victims")
        uids = [_field(_lower(each, "a victim"), "uid", str) or "" for each in _field(victims, "pods", list) or []]
        violations = _field(victims, "numpdbviolations", int) or 0
        proposed[name] = ProposedVictims(tuple(dict.fromkeys(uids)), violations)
    return proposed


def read_filter_answer(extender: Extender, body: bytes, given: Collection[str]) -> FilterAnswer:
    """What a filter call answered; nodes that were not in the call do not count.

    Raises:
        ExtenderError: it answered an error, a node it was not given, or something else altogether.
    """
    answer = _object(body)
    if error := _field(answer, "error", str):
        raise ExtenderError(error)
    known = frozenset(given)
    names = _field(answer, "nodenames", list) if extender.node_cache_capable else None
    if names is not None:
        for name in names:
            if name not in known:
                raise ExtenderError(
                    f'extender "{extender.shown_url}" claims a filtered node "{name}" '
                    "which is not found in the input node list"
                )
    else:
        items = _field(_field(answer, "nodes", dict) or {}, "items", list) or []
        names = [_node_name(item) for item in items]
    unresolvable = _failed(answer, "failedandunresolvablenodes")
    failed = _failed(answer, "failednodes")
    verdicts = {name: Status(Code.UNSCHEDULABLE, (text,), EXTENDER) for name, text in failed.items() if name in known}
    for name, text in unresolvable.items():
        if name in known:
            verdicts[name] = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (text,), EXTENDER)
    return FilterAnswer(tuple(name for name in dict.fromkeys(names) if name in known), verdicts)


def read_priorities(extender: Extender, body: bytes) -> dict[str, int]:
    """The weighted scores of a prioritize call by node name, in the plugins' range (upstream: prioritizeNodes).

    Raises:
        ExtenderError: the answer is not a list of hosts and scores.
    """
    answer = _decoded(body)
    if not isinstance(answer, list):
        raise ExtenderError("the answer is not a list of hosts and scores")
    scores: dict[str, int] = {}
    for each in answer:
        if not isinstance(each, dict):
            raise ExtenderError("the answer holds an entry that is not a host and a score")
        entry = {key.lower(): value for key, value in each.items()}
        host, score = _field(entry, "host", str) or "", _field(entry, "score", int) or 0
        weighted = score * extender.weight * (MAX_NODE_SCORE // _MAX_EXTENDER_PRIORITY)
        total = scores.get(host, 0) + weighted
        scores[host] = max(-_MAX_SCORE, min(total, _MAX_SCORE))
    return scores


def read_bind_answer(body: bytes) -> None:
    """Make sure that a bind call bound the pod.

    Raises:
        ExtenderError: it answered an error, or no object.
    """
    if error := _field(_object(body), "error", str):
        raise ExtenderError(error)


def _decoded(body: bytes) -> Any:  # noqa: ANN401  whatever JSON holds
    try:
        return msgspec.json.decode(body)
    except DECODE_ERRORS as error:
        raise ExtenderError(f"the answer is not JSON: {error}") from error


def _object(body: bytes) -> dict[str, Any]:
    """The answer with its keys in lower case: Go, which extenders are mostly written in, does not mind theirs."""
    return _lower(_decoded(body))


def _lower(answer: object, what: str = "the answer") -> dict[str, Any]:
    if answer is None:
        return {}
    if not isinstance(answer, dict):
        raise ExtenderError(f"{what} is not an object")
    return {key.lower(): value for key, value in answer.items()}


def _field(answer: Mapping[str, Any], name: str, kind: type) -> Any:  # noqa: ANN401  of `kind`, or None
    value = answer.get(name)
    if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
        raise ExtenderError(f"the answer's {name} is a {type(value).__name__}, not a {kind.__name__}")
    return value


def _failed(answer: Mapping[str, Any], name: str) -> dict[str, str]:
    failed = _field(answer, name, dict) or {}
    if not all(isinstance(text, str) for text in failed.values()):
        raise ExtenderError(f"the answer's {name} holds something that is not text")
    return dict(failed)


def _node_name(item: object) -> str:
    metadata = item.get("metadata") if isinstance(item, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str):
        raise ExtenderError("the answer holds a node without a name")
    return name
