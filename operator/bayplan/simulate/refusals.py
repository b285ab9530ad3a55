"""What the API server refuses of any object, and of pods."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from bayplan.api.meta_objects import Quantity
from bayplan.api.objects import PodSpec, ResourceRequirements, TopologySpreadConstraint
from bayplan.api.quantity import QuantityError, nano
from bayplan.cache.resources import CPU, EPHEMERAL_STORAGE, HUGEPAGES, MEMORY, is_extended, is_scalar

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_MAX_NAME: Final = 253


_TIMES: Final = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
"""What the five fields of a CronJob's schedule may be: minute, hour, day, month, day of the week."""
_STEP: Final = re.compile(r"/[0-9]+")
_NUMBER: Final = re.compile(r"[0-9]+")


class AdmissionError(ValueError):
    """The API server would refuse the object; the text starts with the field."""


def check_name(name: str, path: str = "metadata.name") -> None:
    """Check a name as the API server does; raises AdmissionError that names `path`."""
    if not name:
        raise AdmissionError(f"{path}: Required value")
    if len(name) > _MAX_NAME or not _NAME.fullmatch(name):
        raise AdmissionError(f"{path}: {name[:64]!a} is not a valid name")


def check_schedule(schedule: str) -> None:
    """Check the numbers of when a CronJob runs, if it says so by five fields; raises AdmissionError."""
    fields = schedule.split()
    is_valid = len(fields) == len(_TIMES) and all(
        lowest <= float(number) <= highest
        for field, (lowest, highest) in zip(fields, _TIMES, strict=True)
        for number in _NUMBER.findall(_STEP.sub("", field))
    )
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

    What cannot be overcommitted, such as devices and huge pages, needs a limit that is its request.

    Raises:
        AdmissionError: it is not so.
    """
    if not spec.containers:
        raise AdmissionError("spec.containers: Required value")
    for field, containers in (("containers", spec.containers), ("initContainers", spec.init_containers or ())):
        for index, each in enumerate(containers):
            _check_both(each.resources, f"spec.{field}[{index}].resources")
            _check_limited(each.resources, f"spec.{field}[{index}].resources")
    _check_both(spec.resources, "spec.resources")


def check_amounts(amounts: Mapping[str, Quantity] | None, path: str) -> None:
    """Check that no amount is below nothing, and that devices come whole; raises AdmissionError that names it."""
    for name, amount in (amounts or {}).items():
        where = f"{path}[{name[:64]}]: Invalid value: {amount!a}"
        # What cannot be read is read as 0 where it does get in.
        if str(amount).startswith("-") and _nano(str(amount)[1:]):
            raise AdmissionError(f"{where}: must be greater than or equal to 0")
        if is_extended(name) and (_nano(amount) or 0) % 10**9:
            raise AdmissionError(f"{where}: must be an integer")


def _check_both(resources: ResourceRequirements | None, path: str) -> None:
    if resources is not None:
        check_amounts(resources.limits, f"{path}.limits")
        check_amounts(resources.requests, f"{path}.requests")


def _check_limited(resources: ResourceRequirements | None, path: str) -> None:
    """Upstream: pkg/apis/core/validation/validation.go, ValidateContainerResourceRequirements."""
    if resources is None:
        return
    limits = resources.limits or {}
    for field, amounts in (("requests", resources.requests), ("limits", limits)):
        for name in amounts or ():
            if "/" not in name and name not in (CPU, MEMORY, EPHEMERAL_STORAGE) and not name.startswith(HUGEPAGES):
                where = f"{path}.{field}[{name[:64]}]"
                raise AdmissionError(
                    f"{where}: Invalid value: {name[:64]!a}: must be a standard resource for containers"
                )
    for name, amount in (resources.requests or {}).items():
        if name in (CPU, MEMORY, EPHEMERAL_STORAGE):
            _check_below(amount, limits.get(name), name, path)
            continue
        if not is_scalar(name) or _nano(amount) is None:
            continue
        if name not in limits:
            raise AdmissionError(f"{path}.limits: Required value: Limit must be set for non overcommitable resources")
        if _nano(limits[name]) != _nano(amount):
            text = f"must be equal to {name[:64]} limit of {limits[name]}"
            raise AdmissionError(f"{path}.requests: Invalid value: {str(amount)[:64]!a}: {text}")


def _check_below(amount: Quantity, limit: Quantity, name: str, path: str) -> None:
    asked, most = _nano(amount), _nano(limit)
    if limit is not None and asked is not None and most is not None and asked > most:
        text = f"must be less than or equal to {name} limit of {str(limit)[:64]}"
        raise AdmissionError(f"{path}.requests: Invalid value: {str(amount)[:64]!a}: {text}")


def _nano(amount: Quantity) -> int | None:
    try:
        return nano(amount)
    except QuantityError:
        return None
