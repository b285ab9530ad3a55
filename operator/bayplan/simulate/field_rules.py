"""What the API server refuses in the fields that decisions read, beyond what its OpenAPI document says.

Upstream: pkg/apis/core/validation/validation.go, apimachinery pkg/apis/meta/v1/validation.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from bayplan.api.meta_objects import LabelSelector
from bayplan.api.objects import PodSpec
from bayplan.api.quantity import QuantityError, nano
from bayplan.api.selectors import compile_label_selector, label_value_problems
from bayplan.config.errors import FieldError, child, duplicate, forbidden, invalid, item, quote, required, unsupported
from bayplan.config.fields import Fields
from bayplan.config.labels import decode_node_affinity, validate_label_name
from bayplan.simulate.documents import Decoder
from bayplan.simulate.refusals import AdmissionError, check_constraints, check_containers

Fielded = Mapping[str, Any]
"""An object of a file whose fields have the right types, or are null."""

_HANDLERS: Final = frozenset(("exec", "grpc", "httpGet", "tcpSocket"))
_SELECTOR: Final = Decoder(LabelSelector)
_POD_SPEC: Final = Decoder(PodSpec)


def _labels(labels: Fielded | None, path: str) -> Iterator[FieldError]:
    for key, value in (labels or {}).items():
        where = child(path, key)
        yield from validate_label_name(key, where)
        yield from (invalid(where, value, problem) for problem in label_value_problems(value or ""))


def _label_selector(selector: Fielded) -> Iterator[FieldError]:
    if text := compile_label_selector(_SELECTOR(selector)).error:
        yield FieldError("", text)


def _node_affinity(affinity: Fielded) -> Iterator[FieldError]:
    fields = Fields(affinity)
    decode_node_affinity(fields)
    # The API server lets a bound pass that is no number; such a term matches no node.
    yield from (each for each in fields.errors if not each.message.endswith("the value must be an integer"))
    name = "requiredDuringSchedulingIgnoredDuringExecution"
    if affinity.get(name) is not None and not affinity[name].get("nodeSelectorTerms"):
        yield required(f"{name}.nodeSelectorTerms", "must have at least one node selector term")


def _topology_key(fields: Fielded) -> Iterator[FieldError]:
    if key := fields.get("topologyKey"):
        yield from validate_label_name(key, "topologyKey")
    else:
        yield required("topologyKey", "can not be empty")


def _spread_constraint(constraint: Fielded) -> Iterator[FieldError]:
    yield from _topology_key(constraint)
    least = constraint.get("minDomains")
    for name, number in (("maxSkew", constraint.get("maxSkew") or 0), ("minDomains", 1 if least is None else least)):
        if number <= 0:
            yield invalid(name, number, "must be greater than zero")
    if least is not None and constraint["whenUnsatisfiable"] != "DoNotSchedule":
        detail = "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"
        yield invalid("minDomains", least, detail)


def _weighted(preferred: Fielded) -> Iterator[FieldError]:
    if not 1 <= (weight := preferred.get("weight") or 0) <= 100:
        yield invalid("weight", weight, "must be in the range 1-100")


def _toleration(toleration: Fielded) -> Iterator[FieldError]:
    key, operator, value = (toleration.get(name) or "" for name in ("key", "operator", "value"))
    if key:
        yield from validate_label_name(key, "key")
    elif operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid("operator", operator, detail)
    if operator == "Exists" and value:
        yield invalid("operator", toleration.get("operator"), "value must be empty when `operator` is 'Exists'")
    yield from (invalid("value", value, problem) for problem in label_value_problems(value))
    if toleration.get("tolerationSeconds") is not None and toleration.get("effect") != "NoExecute":
        yield invalid("effect", toleration.get("effect") or "", "must be 'NoExecute' when `tolerationSeconds` is set")


def _node_spec(spec: Fielded) -> Iterator[FieldError]:
    seen = set()
    for index, taint in enumerate(spec.get("taints") or ()):
        path = item("taints", index)
        yield from validate_label_name(taint.get("key") or "", child(path, "key"))
        value = taint.get("value") or ""
        yield from (invalid(child(path, "value"), value, problem) for problem in label_value_problems(value))
        pair = taint.get("key"), taint["effect"]
        if pair in seen:
            yield duplicate(path, "{}:{}".format(*pair))
        seen.add(pair)


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
    seen = set()
    for path, container in _containers(spec):
        if (name := container.get("name")) in seen:
            yield duplicate(f"{path}.name", name)
        seen.add(name)
        for index, port in enumerate(container.get("ports") or () if spec.get("hostNetwork") else ()):
            if (port.get("hostPort") or port["containerPort"]) != port["containerPort"]:
                where = child(f"{path}.{item('ports', index)}", "hostPort")
                yield invalid(where, port["hostPort"], "must match `containerPort` when `hostNetwork` is true")


def _containers(spec: Fielded) -> Iterator[tuple[str, Fielded]]:
    for field in ("containers", "initContainers"):
        yield from ((item(field, index), each) for index, each in enumerate(spec.get(field) or ()))


def _mounts(spec: Fielded, path: str, claims: Sequence[Fielded] = ()) -> Iterator[FieldError]:
    volumes = {each.get("name") for each in (*(spec.get("volumes") or ()), *claims)}
    for where, container in _containers(spec):
        for index, mount in enumerate(container.get("volumeMounts") or ()):
            if (name := mount.get("name") or "") not in volumes:
                yield FieldError(f"{path}.{where}.{item('volumeMounts', index)}.name", f"Not found: {quote(name)}")


def _workload(spec: Fielded, policies: Sequence[str] = ("Always",)) -> Iterator[FieldError]:
    pod = (spec.get("template") or {}).get("spec") or {}
    if (policy := pod.get("restartPolicy") or "Always") not in policies:
        yield unsupported("template.spec.restartPolicy", policy, policies)
    # A StatefulSet has volumes of its claims besides.
    claims = [each.get("metadata") or {} for each in spec.get("volumeClaimTemplates") or ()]
    yield from _mounts(pod, "template.spec", claims)


def _strategy(strategy: Fielded) -> Iterator[FieldError]:
    if strategy.get("type") == "Recreate" and strategy.get("rollingUpdate") is not None:
        yield forbidden("rollingUpdate", "may not be specified when strategy `type` is 'Recreate'")


def _rolling_update(fields: Fielded) -> Iterator[FieldError]:
    if {fields.get("maxSurge"), fields.get("maxUnavailable")} <= {0, "0%"}:
        yield invalid("maxUnavailable", fields["maxUnavailable"], "may not be 0 when `maxSurge` is 0")


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
        nano(value)
    except QuantityError as error:
        yield FieldError("", str(error))


RULES: Final[Mapping[str, Callable[[Any], Iterable[FieldError]]]] = {
    **dict.fromkeys(("ContainerPort", "GRPCAction", "HTTPGetAction", "TCPSocketAction"), _ports),
    **dict.fromkeys((f"{kind}Spec" for kind in ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet")), _workload),
    "DeploymentStrategy": _strategy,
    "JobSpec": lambda spec: _workload(spec, ("OnFailure", "Never")),
    "LabelSelector": _label_selector,
    "LabelSelectorRequirement": lambda requirement: _label_selector({"matchExpressions": [requirement]}),
    "NodeAffinity": _node_affinity,
    "NodeSpec": _node_spec,
    "ObjectMeta": lambda meta: _labels(meta.get("labels"), "labels"),
    "Pod": lambda pod: _mounts(pod.get("spec") or {}, "spec"),
    "PodAffinityTerm": _topology_key,
    "PodSchedulingGate": lambda gate: validate_label_name(gate.get("name") or "", "name"),
    "PodSpec": _pod_spec,
    "PreferredSchedulingTerm": _weighted,
    "Probe": lambda probe: () if probe.keys() & _HANDLERS else [required("", "must specify a handler type")],
    "Quantity": _quantity,
    "ReplicationControllerSpec": _workload,
    "RollingUpdateDeployment": _rolling_update,
    "Toleration": _toleration,
    "TopologySpreadConstraint": _spread_constraint,
    "Volume": _volume,
    "WeightedPodAffinityTerm": _weighted,
}
"""By the name of the definition that they are about; asked where the document has nothing against the object."""
