"""What is said of pods and workloads as files have them."""

from bayplan.simulate.validation import published_errors

CONTAINER = {"name": "c", "image": "i"}
NEAR = "affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
SELECTOR = {"matchLabels": {"x": "y"}}
PORT = {"containerPort": 80, "hostPort": 80}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def errors(api_version, kind, spec):
    made = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": spec}
    return list(map(str, published_errors(api_version, kind, made)))


def errors_of_pod(**spec):
    return errors("v1", "Pod", {"containers": [CONTAINER], **spec})


def errors_of_container(**fields):
    return errors_of_pod(containers=[{**CONTAINER, **fields}])


def errors_of_workload(kind, template=None, api_version="apps/v1", **spec):
    of_pod = {"containers": [CONTAINER], **(template or {})}
    metadata = {"labels": {"a": "b"}}
    selector = {"selector": {"matchLabels": {"a": "b"}}} if api_version == "apps/v1" else {}
    return errors(api_version, kind, {**selector, "template": {"metadata": metadata, "spec": of_pod}, **spec})


def spread(**fields):
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", **fields}
    return {"topologySpreadConstraints": [constraint]}


def near(**fields):
    term = {"topologyKey": "zone", **fields}
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def asking(**fields):
    return [{**CONTAINER, "resources": fields}]
