"""What the API server refuses in the fields that decisions read, beyond what its OpenAPI document says.

Upstream: pkg/apis/core/validation/validation.go, apimachinery pkg/apis/meta/v1/validation.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from bayplan.api.objects import PodSpec
from bayplan.api.quantity import QuantityError, milli
from bayplan.api.selectors import label_value_problems
from bayplan.config.errors import FieldError, child, forbidden, invalid, item, quote, repeated, required, unsupported
from bayplan.config.labels import validate_label_name
from bayplan.simulate import placement_rules
from bayplan.simulate.documents import Decoder
from bayplan.simulate.placement_rules import Fielded
from bayplan.simulate.refusals import AdmissionError, check_constraints, check_containers

_HANDLERS: Final = frozenset(("exec", "grpc", "httpGet", "tcpSocket"))
_PERCENT: Final = re.compile(r"[0-9]+%")
_NO_PERCENT: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', "
    "regex used for validation is '[0-9]+%')"
)
_NOT_NEGATIVE: Final = (
    *("activeDeadlineSeconds", "backoffLimit", "backoffLimitPerIndex", "failedJobsHistoryLimit", "maxFailedIndexes"),
    *("maxSurge", "maxUnavailable", "minAvailable", "minReadySeconds", "partition", "revisionHistoryLimit"),
    *("startingDeadlineSeconds", "successfulJobsHistoryLimit", "ttlSecondsAfterFinished"),
)
_SYSTEMS: Final = ("linux", "windows")
_POD_SPEC: Final = Decoder(PodSpec)


def _labels(labels: Fielded | None, path: str) -> Iterator[FieldError]:
    for key, value in (labels or {}).items():
        where = child(path, key)
        yield from validate_label_name(key, where)
        yield from (invalid(where, value, problem) for problem in label_value_problems(value or ""))


def _metadata(meta: Fielded) -> Iterator[FieldError]:
    yield from _labels(meta.get("labels"), "labels")
    for key in meta.get("annotations") or ():
        # Upper case is the same to it (upstream: apimachinery pkg/api/validation/objectmeta.go ValidateAnnotations).
        yield from validate_label_name(key.lower(), child("annotations", key))


def _node_spec(spec: Fielded) -> Iterator[FieldError]:
    taints = [(item("taints", index), each) for index, each in enumerate(spec.get("taints") or ())]
    for path, taint in taints:
        yield from validate_label_name(taint.get("key") or "", child(path, "key"))
        value = taint.get("value") or ""
        yield from (invalid(child(path, "value"), value, problem) for problem in label_value_problems(value))
    yield from repeated((path, f"{taint.get('key')}:{taint['effect']}") for path, taint in taints)


def _pod_spec(spec: Fielded) -> Iterator[FieldError]:
    yield from _labels(spec.get("nodeSelector"), "nodeSelector")
    decoded = _POD_SPEC(spec)
    for check in (check_containers, lambda each: check_constraints(each.topology_spread_constraints or ())):
        try:
            check(decoded)
        except AdmissionError as error:
            path, _, message = str(error).removeprefix("spec.").partition(": ")
            yield FieldError(path, message)
    if spec.get("schedulingGates") and spec.get("nodeName"):
        yield forbidden("nodeName", "cannot be set until all schedulingGates have been cleared")
    if (seconds := spec.get("activeDeadlineSeconds")) is not None and not 1 <= seconds < 2**31:
        yield invalid("activeDeadlineSeconds", seconds, "must be between 1 and 2147483647, inclusive")
    yield from _environment(spec)
    if (spec.get("resources") or {}).get("claims"):
        yield forbidden("resources.claims", "claims may not be set for Resources at pod-level")
    for fields in (("containers", "initContainers"), ("volumes",), ("resourceClaims",)):
        yield from repeated((f"{path}.name", each["name"]) for path, each in _items(spec, *fields))
    yield from repeated((path, gate["name"]) for path, gate in _items(spec, "schedulingGates"))
    ports = [
        (f"{path}.{where}.hostPort", port)
        for path, container in _items(spec, "containers")
        for where, port in _items(container, "ports")
    ]
    on_host = bool(spec.get("hostNetwork"))
    for path, port in ports if on_host else ():
        if (port.get("hostPort") or port["containerPort"]) != port["containerPort"]:
            yield invalid(path, port["hostPort"], "must match `containerPort` when `hostNetwork` is true")
    yield from repeated(
        (path, f"{port.get('protocol') or 'TCP'}/{port.get('hostIP') or ''}/{number}")
        for path, port in ports
        if (number := port.get("hostPort") or (on_host and port["containerPort"]))
    )


def _environment(spec: Fielded) -> Iterator[FieldError]:
    if spec.get("hostPID") and spec.get("shareProcessNamespace"):
        yield invalid("shareProcessNamespace", True, "ShareProcessNamespace and HostPID cannot both be enabled")
    if spec.get("dnsPolicy") == "None" and not (spec.get("dnsConfig") or {}).get("nameservers"):
        yield required("dnsConfig.nameservers", "must provide at least one DNS nameserver when `dnsPolicy` is None")
    if (system := (spec.get("os") or {}).get("name")) is not None and system not in _SYSTEMS:
        yield unsupported("os", system, _SYSTEMS)


def _items(fields: Fielded, *names: str) -> Iterator[tuple[str, Fielded]]:
    for name in names:
        yield from ((item(name, index), each) for index, each in enumerate(fields.get(name) or ()))


def _mounts(spec: Fielded, path: str, claims: Sequence[Fielded] = ()) -> Iterator[FieldError]:
    volumes = {each.get("name") for each in (*(spec.get("volumes") or ()), *claims)}
    for where, container in _items(spec, "containers", "initContainers"):
        for place, mount in _items(container, "volumeMounts"):
            if (name := mount.get("name") or "") not in volumes:
                yield FieldError(f"{path}.{where}.{place}.name", f"Not found: {quote(name)}")


def _workload(spec: Fielded, *policies: str) -> Iterator[FieldError]:
    pod = (spec.get("template") or {}).get("spec") or {}
    if (policy := pod.get("restartPolicy") or "Always") not in policies:
        yield unsupported("template.spec.restartPolicy", policy, policies)
    yield from _not_negative(spec)
    # A StatefulSet has volumes of its claims besides.
    claims = [each.get("metadata") or {} for each in spec.get("volumeClaimTemplates") or ()]
    yield from _mounts(pod, "template.spec", claims)


def _replicated(kind: str, spec: Fielded, called: str = "") -> Iterator[FieldError]:
    """Check what keeps its pods running; `kind` and `called` are what the API server calls it."""
    yield from _workload(spec, "Always")
    if ((spec.get("template") or {}).get("spec") or {}).get("activeDeadlineSeconds") is not None:
        yield forbidden("template.spec.activeDeadlineSeconds", f"activeDeadlineSeconds in {kind} is not Supported")
    if called and (selector := spec.get("selector")) is not None and not any(selector.values()):
        yield FieldError("selector", f"Invalid value: {{}}: empty selector is invalid for {called}")


def _job(spec: Fielded) -> Iterator[FieldError]:
    yield from _workload(spec, "OnFailure", "Never")
    if spec.get("podFailurePolicy") is not None and spec["template"]["spec"].get("restartPolicy") == "OnFailure":
        detail = 'only "Never" is supported when podFailurePolicy is specified'
        yield invalid("template.spec.restartPolicy", "OnFailure", detail)
    for name in ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"):
        if spec.get(name) is not None and spec.get("completionMode") != "Indexed":
            yield invalid(name, spec[name], "requires indexed completion mode")


def _pod(pod: Fielded) -> Iterator[FieldError]:
    spec = pod.get("spec") or {}
    yield from _mounts(spec, "spec")
    if spec.get("ephemeralContainers"):
        yield forbidden("spec.ephemeralContainers", "cannot be set on create")


def _template(template: Fielded) -> Iterator[FieldError]:
    if (template.get("spec") or {}).get("ephemeralContainers"):
        yield forbidden("spec.ephemeralContainers", "ephemeral containers not allowed in pod template")


def _not_negative(fields: Fielded) -> Iterator[FieldError]:
    for name in _NOT_NEGATIVE:
        if isinstance(number := fields.get(name), int) and number < 0:
            yield invalid(name, number, "must be greater than or equal to 0")


def _shares(fields: Fielded) -> Iterator[FieldError]:
    """Check numbers of pods and parts of them."""
    yield from _not_negative(fields)
    for name in ("minAvailable", "maxUnavailable", "maxSurge"):
        if not isinstance(share := fields.get(name), str):
            continue
        if not _PERCENT.fullmatch(share):
            yield invalid(name, share, _NO_PERCENT)
        elif name != "maxSurge" and (len(number := share[:-1].lstrip("0")) > 3 or int(number or 0) > 100):
            yield invalid(name, share, "must not be greater than 100%")


def _budget(spec: Fielded) -> Iterator[FieldError]:
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        yield invalid("", spec, "minAvailable and maxUnavailable cannot be both set")
    yield from _shares(spec)


def _access_modes(spec: Fielded) -> Iterator[FieldError]:
    if {"ReadWriteOncePod"} < {*(spec.get("accessModes") or ())}:
        yield forbidden("accessModes", "may not use ReadWriteOncePod with other access modes")


def _claim(spec: Fielded) -> Iterator[FieldError]:
    yield from _access_modes(spec)
    if not spec.get("accessModes"):
        yield required("accessModes", "at least 1 access mode is required")
    if (storage := ((spec.get("resources") or {}).get("requests") or {}).get("storage")) is None:
        yield required("resources[storage]")
    elif milli(storage) <= 0:
        yield invalid("resources[storage]", storage, "must be greater than zero")


def _persistent_volume(spec: Fielded) -> Iterator[FieldError]:
    yield from _access_modes(spec)
    yield from (required(name) for name in ("capacity", "accessModes") if not spec.get(name))
    if spec.get("local") is not None and spec.get("nodeAffinity") is None:
        yield required("nodeAffinity", "Local volume requires node affinity")


def _strategy(strategy: Fielded) -> Iterator[FieldError]:
    if strategy.get("type") == "Recreate" and strategy.get("rollingUpdate") is not None:
        yield forbidden("rollingUpdate", "may not be specified when strategy `type` is 'Recreate'")


def _rolling_update(fields: Fielded) -> Iterator[FieldError]:
    yield from _shares(fields)
    if {fields.get("maxSurge"), fields.get("maxUnavailable")} <= {0, "0%"}:
        yield invalid("maxUnavailable", fields["maxUnavailable"], "may not be 0 when `maxSurge` is 0")


def _daemon_update(fields: Fielded) -> Iterator[FieldError]:
    yield from _shares(fields)
    surges, leaves = (fields.get(name) not in (None, 0, "0%") for name in ("maxSurge", "maxUnavailable"))
    leaves |= fields.get("maxUnavailable") is None
    if surges and leaves:
        yield invalid("maxSurge", fields["maxSurge"], "may not be set when maxUnavailable is non-zero")
    if not surges and not leaves:
        yield required("maxUnavailable", "cannot be 0 when maxSurge is 0")


def _ports(fields: Fielded) -> Iterator[FieldError]:
    for name in ("containerPort", "hostPort", "port"):
        # A port may have a name, too; a host's of 0 is none.
        if isinstance(port := fields.get(name), int) and not (name != "hostPort") <= port <= 65535:
            yield invalid(name, port, "must be between 1 and 65535, inclusive")


def _volume(volume: Fielded) -> Iterator[FieldError]:
    for source in [each for each in volume if each != "name" and volume[each] is not None][1:]:
        yield forbidden(source, "may not specify more than 1 volume type")


def _quantity(value: object) -> Iterator[FieldError]:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        yield invalid("", value, "must be a quantity")
        return
    try:
        milli(value)
    except QuantityError as error:
        yield FieldError("", str(error))


RULES: Final[Mapping[str, Callable[[Any], Iterable[FieldError]]]] = {
    **dict.fromkeys(("ContainerPort", "GRPCAction", "HTTPGetAction", "TCPSocketAction"), _ports),
    "CronJobSpec": _not_negative,
    "DaemonSetSpec": partial(_replicated, "DaemonSet", called="daemonset"),
    "DeploymentSpec": partial(_replicated, "ReplicaSet", called="deployment"),
    "DeploymentStrategy": _strategy,
    "JobSpec": _job,
    "LabelSelector": placement_rules.label_selector,
    "LabelSelectorRequirement": lambda requirement: placement_rules.label_selector({"matchExpressions": [requirement]}),
    "NodeAffinity": placement_rules.node_affinity,
    "NodeSpec": _node_spec,
    "ObjectMeta": _metadata,
    "Pod": _pod,
    "PersistentVolumeClaimSpec": _claim,
    "PersistentVolumeSpec": _persistent_volume,
    "PodAffinityTerm": placement_rules.affine,
    "PodDisruptionBudgetSpec": _budget,
    "PodSchedulingGate": lambda gate: validate_label_name(gate.get("name") or "", "name"),
    "PodSpec": _pod_spec,
    "PodTemplateSpec": _template,
    "PreferredSchedulingTerm": placement_rules.weighted,
    "Probe": lambda probe: () if probe.keys() & _HANDLERS else [required("", "must specify a handler type")],
    "Quantity": _quantity,
    "ReplicaSetSpec": partial(_replicated, "ReplicaSet", called="deployment"),
    "ReplicationControllerSpec": partial(_replicated, "ReplicationController"),
    "RollingUpdateDaemonSet": _daemon_update,
    "RollingUpdateDeployment": _rolling_update,
    "RollingUpdateStatefulSetStrategy": _not_negative,
    "StatefulSetSpec": partial(_replicated, "StatefulSet", called="statefulset"),
    "Toleration": placement_rules.toleration,
    "TopologySpreadConstraint": placement_rules.spread_constraint,
    "Volume": _volume,
    "WeightedPodAffinityTerm": placement_rules.weighted,
}
"""By the name of the definition that they are about; asked where the document has nothing against the object."""
