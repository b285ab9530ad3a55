"""What a kubelet makes of a pod whose container is bayplan's image: the command line, the environment and the files."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from e2e.controlplane.client import Object

_REFERENCE = re.compile(r"\$\((\w+)\)")


class UnsupportedPodError(ValueError):
    """A pod asks for what cannot be had here; the message names the pod and the field."""


def environment_of(pod: Object) -> dict[str, str]:
    """Returns the variables of the pod's only container; fields of the pod are looked up.

    Raises:
        UnsupportedPodError: a variable comes from somewhere else.
    """
    found: dict[str, str] = {}
    for variable in _container(pod).get("env", ()):
        source = variable.get("valueFrom", {}).get("fieldRef")
        if source is not None:
            found[variable["name"]] = _field(pod, source["fieldPath"])
        elif "valueFrom" in variable:
            raise UnsupportedPodError(f"pod {_name(pod)}: variable {variable['name']}: only fieldRef is understood")
        else:
            found[variable["name"]] = variable.get("value", "")
    return found


def arguments_of(pod: Object, folders: Mapping[str, Path]) -> list[str]:
    """Returns what follows `bayplan` in the pod's only container, with variables and mounted paths filled in.

    A `command` takes the place of the image's entry point, `args` that of its command. `folders` says where the content
    of each volume is; a volume without a folder keeps the path of its mount.

    Raises:
        UnsupportedPodError: the command is another program than bayplan.
    """
    container, environment = _container(pod), environment_of(pod)
    mounts = {each["mountPath"]: folders[each["name"]] for each in container["volumeMounts"] if each["name"] in folders}
    words: list[str] = [*container.get("command", ["bayplan"]), *container.get("args", ())]
    program, *arguments = words
    if program != "bayplan":
        raise UnsupportedPodError(f"pod {_name(pod)}: command {program}: only bayplan can be run")
    return [_moved(_expanded(text, environment), mounts) for text in arguments]


def config_maps_of(pod: Object) -> dict[str, str]:
    """Returns the names of the ConfigMaps that are mounted, by the names of their volumes."""
    return {each["name"]: each["configMap"]["name"] for each in pod["spec"]["volumes"] if "configMap" in each}


def readiness_path_of(pod: Object) -> str:
    """Returns the path that the readiness probe of the pod's only container asks for."""
    path: str = _container(pod)["readinessProbe"]["httpGet"]["path"]
    return path


def status_of(pod: Object, *, is_ready: bool, restarts: int, running_since: str | None, now: str) -> Object:
    """Returns what a kubelet says of the pod: a strategic merge patch of its status; moments are RFC 3339.

    `running_since` is None for a container that ended and is to be started again.
    """
    container = _container(pod)
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    facts = {"Initialized": True, "ContainersReady": is_ready, "Ready": is_ready}
    return {
        "status": {
            "phase": "Running",
            "startTime": pod["status"].get("startTime", now),
            "conditions": [
                {"type": name, "status": str(value), "lastTransitionTime": now} for name, value in facts.items()
            ],
            "containerStatuses": [
                {
                    "name": container["name"],
                    "image": container["image"],
                    "imageID": "",
                    "ready": is_ready,
                    "started": running_since is not None,
                    "restartCount": restarts,
                    "state": waiting if running_since is None else {"running": {"startedAt": running_since}},
                }
            ],
        }
    }


def _container(pod: Object) -> dict[str, Any]:
    containers: list[dict[str, Any]] = pod["spec"]["containers"]
    if len(containers) != 1:
        raise UnsupportedPodError(f"pod {_name(pod)}: {len(containers)} containers instead of one")
    return containers[0]


def _field(pod: Object, path: str) -> str:
    found: Any = pod
    for part in path.split("."):
        if not isinstance(found, dict) or part not in found:
            raise UnsupportedPodError(f"pod {_name(pod)}: there is no field {path}")
        found = found[part]
    return str(found)


def _name(pod: Object) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _expanded(text: str, environment: Mapping[str, str]) -> str:
    # As upstream: what is no variable stays as it is.
    return _REFERENCE.sub(lambda match: environment.get(match[1], match[0]), text)


def _moved(text: str, mounts: Mapping[str, Path]) -> str:
    for mounted, folder in mounts.items():
        text = re.sub(rf"(?<![\w/]){re.escape(mounted)}(?=/|$)", lambda _, to=folder: str(to), text)  # type: ignore[misc]
    return text
