"""What the API server refuses of any object, and of pods, and the names that it makes."""

import re
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, Final, TypeVar

import msgspec
from msgspec import structs

from bayplan.api.meta_objects import ObjectMeta, Quantity, generated_name
from bayplan.api.objects import PodSpec, ResourceRequirements, TopologySpreadConstraint
from bayplan.api.quantity import QuantityError, milli
from bayplan.api.storage_objects import StorageMeta
from bayplan.cache.container_requests import spec_requests
from bayplan.cache.resources import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    is_extended,
    is_hugepages,
    is_scalar,
    is_supported_pod_level_resource,
)
from bayplan.simulate.documents import written_metadata

_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAME: Final = re.compile(rf"{_LABEL}(\.{_LABEL})*")
Meta = TypeVar("Meta", ObjectMeta, StorageMeta)

DEFAULT_NAMESPACE: Final = "default"
MAX_NAME: Final = 253
"""Longest name of most objects."""
MAX_LABEL: Final = 63

_TIMES: Final = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
"""What the five fields of a CronJob's schedule may be: minute, hour, day, month, day of the week."""
_OVERCOMMITTED: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)
_OF_PODS: Final = '"cpu", "hugepages-", "memory"'
_WORDS: Final = {3: "jan feb mar apr may jun jul aug sep oct nov dec", 4: "sun mon tue wed thu fri sat"}
"""What else the month and the day of the week may be."""
_WORD: Final = re.compile("[a-z]+")
_STEP: Final = re.compile(r"/[0-9]+")
_NUMBER: Final = re.compile(r"[0-9]+")


class AdmissionError(ValueError):
    """The API server would refuse the object; the text starts with the field."""


def check_name(name: str, path: str = "metadata.name", *, is_label: bool = False) -> None:
    """Check a name as the API server does, or one that may have no dots; raises AdmissionError that names `path`."""
    if not name:
        raise AdmissionError(f"{path}: Required value")
    if len(name) > MAX_NAME or not _NAME.fullmatch(name):
        raise AdmissionError(f"{path}: {name[:64]!a} is not a valid name")
    if is_label and "." in name:
        raise AdmissionError(f"{path}: Invalid value: {name[:64]!a}: must not contain dots")
    if is_label:
        check_length(name, MAX_LABEL, path)


def stored(meta: Meta, kind: str, *, namespaced: bool = True, is_label: bool = False) -> Meta:
    """Return the metadata of an object with a namespace and a uid; `kind` tells it from others of its name.

    Raises:
        AdmissionError: the name or the namespace is none.
    """
    check_name(meta.name, is_label=is_label)
    namespace = (meta.namespace or DEFAULT_NAMESPACE) if namespaced else ""
    if namespace:
        check_name(namespace, "metadata.namespace")
    if meta.namespace == namespace and meta.uid:
        return meta
    place = f"{namespace}/{meta.name}" if namespace else meta.name
    return structs.replace(meta, namespace=namespace, uid=meta.uid or f"file:{kind}{place}")


def check_length(name: str, most: int, path: str = "metadata.name") -> None:
    """Check that a name is short enough for what is made of it; raises AdmissionError that names `path`."""
    if len(name) > most:
        raise AdmissionError(f"{path}: Invalid value: {name!a}: must be no more than {most} characters")


def check_schedule(schedule: str) -> None:
    """Check the numbers and words of when a CronJob runs, if it says so by five fields; raises AdmissionError."""
    fields = schedule.split()
    is_valid = len(fields) == len(_TIMES) and all(
        lowest <= float(number) <= highest
        for field, (lowest, highest) in zip(fields, _TIMES, strict=True)
        for number in _NUMBER.findall(_STEP.sub("", field))
    )
    words = ((place, word) for place, field in enumerate(fields) for word in _WORD.findall(field.lower()))
    is_valid = is_valid and all(word in _WORDS.get(place, "").split() for place, word in words)
    if schedule and not schedule.startswith("@") and not is_valid:
        raise AdmissionError(f"spec.schedule: Invalid value: {schedule[:64]!a}: is no schedule of cron")


def check_constraints(constraints: Sequence[TopologySpreadConstraint]) -> None:
    """Check that a pod has one constraint of a kind for a topology key at most.

    This also bounds what counting pods costs.

    Raises:
        AdmissionError: it has more.
    """
    seen: set[tuple[str, str]] = set()
    for index, each in enumerate(constraints):
        if (pair := (each.topology_key, each.when_unsatisfiable)) in seen:
            shown = f"{each.topology_key[:64]!a}, {each.when_unsatisfiable[:64]!a}"
            raise AdmissionError(f"spec.topologySpreadConstraints[{index}]: Duplicate value: {shown}")
        seen.add(pair)


def check_containers(spec: PodSpec) -> None:
    """Check that a new pod has containers, and that nothing asks for less than nothing.

    What cannot be overcommitted, such as devices and huge pages, needs a limit that is its request. What is asked for
    the pod as a whole is enough for its containers.

    Raises:
        AdmissionError: it is not so.
    """
    if not spec.containers:
        raise AdmissionError("spec.containers: Required value")
    for field, containers in (("containers", spec.containers), ("initContainers", spec.init_containers or ())):
        for index, each in enumerate(containers):
            _check_resources(each.resources, f"spec.{field}[{index}].resources", is_container=True)
    if spec.resources is not None:
        _check_resources(spec.resources, "spec.resources")
        _check_enough(spec, spec.resources)


def _check_enough(spec: PodSpec, whole: ResourceRequirements) -> None:
    """Upstream: pkg/apis/core/validation/validation.go, validatePodResourceConsistency."""
    try:
        asked = spec_requests(spec).total()
    except QuantityError:
        # What reads it tells of that.
        return
    for name, amount in (whole.requests or {}).items():
        if (_milli(amount) or 0) < asked.get(name, 0):
            text = f"must be greater than or equal to aggregate container requests of {written(asked[name])}"
            raise AdmissionError(f"spec.resources.requests[{name[:64]}]: Invalid value: {str(amount)[:64]!a}: {text}")
    for index, container in enumerate(spec.containers):
        for name, amount in ((container.resources and container.resources.limits) or {}).items():
            most = (whole.limits or {}).get(name)
            if most is not None and (_milli(amount) or 0) > (_milli(most) or 0):
                text = f"Invalid value: {str(amount)[:64]!a}: must be less than or equal to pod limits of {most}"
                raise AdmissionError(f"spec.resources.containers[{index}][{name[:64]}].limits: {text}")


def written(amount: int) -> str:
    """Return an amount in thousandths as a quantity."""
    return f"{amount}m" if amount % 1000 else str(amount // 1000)


def check_amounts(amounts: Mapping[str, Quantity] | None, path: str) -> None:
    """Check that no amount is below nothing, and that devices come whole; raises AdmissionError that names it."""
    for name, amount in (amounts or {}).items():
        where = f"{path}[{name[:64]}]: Invalid value: {amount!a}"
        # What cannot be read is read as 0 where it does get in.
        if str(amount).startswith("-") and _milli(str(amount)[1:]):
            raise AdmissionError(f"{where}: must be greater than or equal to 0")
        if is_extended(name) and (_milli(amount) or 0) % 1000:
            raise AdmissionError(f"{where}: must be an integer")


def _check_resources(resources: ResourceRequirements | None, path: str, *, is_container: bool = False) -> None:
    """Upstream: pkg/apis/core/validation/validation.go, validateResourceRequirements."""
    if resources is None:
        return
    limits, requests = resources.limits or {}, resources.requests or {}
    check_amounts(limits, f"{path}.limits")
    check_amounts(requests, f"{path}.requests")
    for where, name in (*((f"{path}.requests", n) for n in requests), *((f"{path}.limits", n) for n in limits)):
        _check_resource_name(name, f"{where}[{name[:64]}]", is_container=is_container)
    for name, amount in requests.items():
        _check_request(name, amount, limits, path)
    names = limits.keys() | requests.keys()
    if any(map(is_hugepages, names)) and names.isdisjoint((CPU, MEMORY)):
        raise AdmissionError(f"{path}: Forbidden: HugePages require cpu or memory")


def _check_resource_name(name: str, where: str, *, is_container: bool) -> None:
    if not is_container and not is_supported_pod_level_resource(name):
        raise AdmissionError(f"{where}: Unsupported value: {name[:64]!a}: supported values: {_OF_PODS}")
    if "/" not in name and name not in _OVERCOMMITTED and not is_hugepages(name):
        raise AdmissionError(f"{where}: Invalid value: {name[:64]!a}: must be a standard resource for containers")


def _check_request(name: str, amount: Quantity, limits: Mapping[str, Quantity], path: str) -> None:
    if name in _OVERCOMMITTED:
        _check_below(amount, limits.get(name), name, path)
    elif is_scalar(name) and _milli(amount) is not None:
        if name not in limits:
            raise AdmissionError(f"{path}.limits: Required value: Limit must be set for non overcommitable resources")
        if _milli(limits[name]) != _milli(amount):
            text = f"must be equal to {name[:64]} limit of {limits[name]}"
            raise AdmissionError(f"{path}.requests: Invalid value: {str(amount)[:64]!a}: {text}")


def _check_below(amount: Quantity, limit: Quantity, name: str, path: str) -> None:
    asked, most = _milli(amount), _milli(limit)
    if limit is not None and asked is not None and most is not None and asked > most:
        text = f"must be less than or equal to {name} limit of {str(limit)[:64]}"
        raise AdmissionError(f"{path}.requests: Invalid value: {str(amount)[:64]!a}: {text}")


def _milli(amount: Quantity) -> int | None:
    try:
        return milli(amount)
    except QuantityError:
        return None


T = TypeVar("T", bound=Any)


class GeneratedNames:
    """Gives each object another name, the same in every run; those of API servers end otherwise."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def named(self, obj: T, value: msgspec.Raw) -> T:
        """Return `obj`, which was decoded from `value`, with a name if there it has none but a generateName."""
        if obj.metadata.name:
            return obj
        start = written_metadata(value).generate_name
        name = generated_name(start, f"{next(self._numbers):05}") if start and isinstance(start, str) else ""
        return structs.replace(obj, metadata=structs.replace(obj.metadata, name=name))
