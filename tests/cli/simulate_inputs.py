"""Objects that simulations are given as files."""

import json

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1"},
    "status": {"allocatable": {"cpu": 4, "pods": 9}},
}
SPEC = {"schedulerName": "bayplan", "containers": [{"name": "c", "resources": {"requests": {"cpu": 1}}}]}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": SPEC}
WEB = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": SPEC},
    },
}
CUSTOM = {"apiVersion": "example.com/v1", "kind": "Spaceship", "metadata": {"name": "s"}}
FORBIDDEN = {"apiVersion": "v1", "kind": "Status", "status": "Failure", "message": "pods is forbidden", "code": 403}


def lists(*objects):
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})


def pod(**spec):
    return {**POD, "spec": {**SPEC, **spec}}


def asking(resource, amount):
    amounts = {resource: amount}
    return pod(containers=[{"name": "c", "resources": {"requests": amounts, "limits": amounts}}])
