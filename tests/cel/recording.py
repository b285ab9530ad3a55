"""Kubernetes' own answers on selectors, kept in files, and bayplan's on the same questions."""

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bayplan.cel.errors import CompileError, EvaluationError
from bayplan.cel.kubernetes_types import Quantity
from bayplan.cel.selector import Device, Selector, versions

DATA = Path(__file__).parent / "data"
BY_HAND = DATA / "by_hand.txt"
DRIVER = "gpu.example.com"


@dataclass(frozen=True)
class Answered:
    """An expression, a device, and what was answered: `{"value": ...}`, `{"compile": ...}` or `{"error": ...}`."""

    expression: str
    device: dict[str, Any]
    answer: dict[str, Any]
    cost: int | None = None


def write_answers(path: Path, answers: list[Answered]) -> None:
    """Writes the answers, the devices once."""
    devices = list({json.dumps(each.device): each.device for each in answers}.values())
    lines = [json.dumps(devices)]
    lines += [json.dumps([each.expression, devices.index(each.device), each.answer, each.cost]) for each in answers]
    with gzip.GzipFile(path, "wb", mtime=0) as file:
        file.write("\n".join(lines).encode())


def read_answers(path: Path) -> list[Answered]:
    """Reads what `write_answers` wrote."""
    first, *lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    devices = json.loads(first)
    return [
        Answered(expression, devices[device], answer, cost)
        for expression, device, answer, cost in map(json.loads, lines)
    ]


def expressions_by_hand() -> list[str]:
    """The expressions of the file, in which `attributes` and `capacity` are those of the driver."""
    whole = {"device.attributes": "\0", "device.capacity": "\1"}
    named = {"attributes": f'device.attributes["{DRIVER}"]', "capacity": f'device.capacity["{DRIVER}"]'}
    text = BY_HAND.read_text()
    for short, long in (*whole.items(), *named.items(), *((mark, name) for name, mark in whole.items())):
        text = text.replace(short, long)
    return text.splitlines()


def made_device(stored: dict[str, Any]) -> Device:
    """The device that is stored as in a ResourceSlice."""
    attributes: dict[str, Any] = {}
    problem = ""
    for name, attribute in stored.get("attributes", {}).items():
        ((kind, value),) = attribute.items()
        try:
            attributes[name] = value
            if kind == "version":
                (attributes[name],) = versions([value], name)
            elif kind == "versions":
                attributes[name] = versions(value, name)
        except EvaluationError as error:
            problem = str(error)
    capacity = {name: Quantity.parse(each["value"]) for name, each in stored.get("capacity", {}).items()}
    shared = bool(stored.get("allowMultipleAllocations", False))
    return Device(DRIVER, attributes, capacity, allow_multiple_allocations=shared, problem=problem)


def answer_of(expression: str, device: Device) -> dict[str, Any]:
    """What bayplan answers, in the form of an answer."""
    try:
        selector = Selector(expression)
    except CompileError as error:
        return {"compile": str(error)}
    try:
        return {"value": selector.matches(device)}
    except EvaluationError as error:
        return {"error": str(error)}
