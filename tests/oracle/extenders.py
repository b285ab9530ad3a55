"""Scheduler extenders that answer by the names of pods and nodes alone, and the configurations that call them."""

import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from e2e.controlplane.loopback_server import QuietHandler, serving
from tests.oracle.case import Object
from tests.oracle.profiles import GPU, document, profile

NOWHERE = "http://extender.test"
"""Where extenders are in documents and recorded messages; each who calls them gives them an address of their own."""

_FAILED = "no licence here"
_UNRESOLVABLE = "never a licence here"
_FILTERS = {"filterVerb": "filter"}
_SCORES = {"prioritizeVerb": "prioritize", "weight": 3}
_PREEMPTS = {"preemptVerb": "preempt"}


def _extender(name: str, *parts: Object, **fields: object) -> Object:
    found: Object = {"urlPrefix": f"{NOWHERE}/{name}", "nodeCacheCapable": True, **fields}
    for part in parts:
        found |= part
    return found


def _calling(*extenders: Object) -> Object:
    return document(profile(), extenders=list(extenders))


CONFIGURATIONS: dict[str, Object] = {
    "extender-of-names": _calling(_extender("calm", _FILTERS, _SCORES)),
    # No filter: nodes that come back whole from one are to kube-scheduler's scores nodes without pods.
    "extender-of-nodes": _calling(_extender("calm", _SCORES, _PREEMPTS, nodeCacheCapable=False)),
    "extender-that-scores": _calling(_extender("calm", _SCORES, weight=1)),
    "extender-that-preempts": _calling(_extender("calm", _FILTERS, _SCORES, _PREEMPTS)),
    "extender-of-a-resource": _calling(
        _extender("calm", _FILTERS, _SCORES, managedResources=[{"name": GPU, "ignoredByScheduler": True}])
    ),
    # One that fails for some pods stops these; where it may be ignored it is called last, and they go on without it.
    "extender-that-fails": _calling(_extender("moody", _FILTERS, _SCORES, _PREEMPTS)),
    "extenders": _calling(
        _extender("moody", _FILTERS, _SCORES, _PREEMPTS, ignorable=True), _extender("calm", _FILTERS, _SCORES)
    ),
}
"""Documents by name, with extenders at NOWHERE."""


@contextmanager
def address_of_extenders(configuration: Object) -> Iterator[str]:
    """Where the configuration's extenders answer until the block ends: NOWHERE if it has none."""
    if "extenders" not in configuration:
        yield NOWHERE
        return
    with serving(_Handler) as port:
        yield f"http://127.0.0.1:{port}"


def moved(configuration: Object, address: str) -> Object:
    """The configuration with its extenders at an address instead of NOWHERE."""
    found: Object = json.loads(json.dumps(configuration).replace(NOWHERE, address))
    return found


def at_no_address(message: str, address: str) -> str:
    """The message with extenders at NOWHERE instead of an address."""
    return message.replace(address, NOWHERE)


class _Handler(QuietHandler):
    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        name, verb = self.path.strip("/").split("/")
        answer = answer_of(name, verb, self.read_json())
        self.reply(*((500, b"") if answer is None else (200, json.dumps(answer).encode())))


def answer_of(extender: str, verb: str, body: Object) -> object:
    """What the extender of that name answers; None means that it fails."""
    pod = body["Pod"]["metadata"]["name"]
    if extender == "moody" and _number("fails", verb, pod) % 4 == 0:
        return None
    if verb == "preempt":
        return _preempt(pod, body)
    if body["NodeNames"] is not None:
        names = body["NodeNames"]
    else:
        names = [item["metadata"]["name"] for item in body["Nodes"]["items"]]
    if verb == "prioritize":
        return [{"Host": name, "Score": _number(extender, "score", pod, name) % 11} for name in names]
    return _filter(extender, pod, body, names)


def _filter(extender: str, pod: str, body: Object, names: list[str]) -> Object:
    """Rejects some nodes in each of the two ways, and leaves some out without a word."""
    verdicts = {name: _number(extender, "filter", pod, name) % 10 for name in names}
    strict = _number(extender, "strict", pod) % 5 == 0
    left = [name for name in names if verdicts[name] > 3 and not strict]
    answer: Object = {
        "FailedNodes": {name: _FAILED for name in names if verdicts[name] < 2 or (strict and verdicts[name] > 3)},
        "FailedAndUnresolvableNodes": {name: _UNRESOLVABLE for name in names if verdicts[name] == 2},
    }
    if body["NodeNames"] is not None:
        return {**answer, "NodeNames": left}
    return {**answer, "Nodes": {"items": [item for item in body["Nodes"]["items"] if item["metadata"]["name"] in left]}}


def _preempt(pod: str, body: Object) -> Object:
    """Leaves most of the nodes where pods could be preempted, and asks for the same victims."""
    if body.get("NodeNameToMetaVictims") is not None:
        told = body["NodeNameToMetaVictims"]
    else:
        told = {
            node: {
                "Pods": [{"UID": each["metadata"]["uid"]} for each in victims["Pods"]],
                "NumPDBViolations": victims.get("NumPDBViolations", 0),
            }
            for node, victims in body["NodeNameToVictims"].items()
        }
    return {
        "NodeNameToMetaVictims": {node: victims for node, victims in told.items() if _number("preempt", pod, node) % 3}
    }


def _number(*words: str) -> int:
    """A number that these words always have, and that tells nothing of others."""
    return zlib.crc32("/".join(words).encode())
