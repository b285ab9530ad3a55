"""What whoever asks may not do of what the configuration has its scheduler do."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final

import msgspec

from bayplan.config.bayplan_args import DefaultPreemptionArgs, PDBPolicy
from bayplan.config.types import SchedulerConfiguration
from bayplan.doctor.finding import Finding

PATH: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
Ask = Callable[[bytes], Awaitable[bytes]]
"""Sends a SelfSubjectAccessReview, and returns what the API server makes of it."""

_Right = tuple[str, str, str, str]
"""Verb, resource with its group, the manifest that grants it, and what is not done without it."""
_ALWAYS: Final[Sequence[_Right]] = (
    ("create", "pods/binding", "base", "no pod is bound"),
    ("patch", "pods/status", "base", "autoscalers do not hear of pods that fit nowhere"),
    ("watch", "pods", "base", "no pod is seen"),
    ("watch", "nodes", "base", "no node is seen"),
)
_DELETE: Final = ("delete", "pods", "components/preemption", "preemption ends no victim")
_EVICT: Final = ("create", "pods/eviction", "components/careful-preemption", "preemption ends no victim")
_VOLUMES: Final = ("patch", "persistentvolumes", "components/volumes", "pods wait whose volumes are not bound yet")
_CLAIMS: Final = "resourceclaims.resource.k8s.io"
_BY: Final = "components/devices"
_DEVICES: Final[Sequence[_Right]] = (
    ("patch", f"{_CLAIMS}/binding", _BY, "no pod gets devices by resource claims"),
    ("update", _CLAIMS, _BY, "no pod gets devices by claims whose opaque parameters have white space"),
    ("create", _CLAIMS, _BY, "no pod gets devices for extended resources of a DeviceClass"),
    ("delete", _CLAIMS, _BY, "claims for extended resources keep their devices where the bind failed"),
)


class _Status(msgspec.Struct, frozen=True):
    allowed: bool = False


class _Review(msgspec.Struct):
    status: _Status = _Status()


async def missing_rights(configuration: SchedulerConfiguration, ask: Ask) -> list[Finding]:
    """Return a finding for each right that is missing; raises what `ask` raises, and a DecodeError for no review."""
    found = []
    for verb, name, granted_by, effect in (*_ALWAYS, *_by_plugin(configuration)):
        kind, _, subresource = name.partition("/")
        resource, _, group = kind.partition(".")
        asked = {"verb": verb, "group": group, "resource": resource, "subresource": subresource}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": asked},
        }
        answer = msgspec.json.decode(await ask(msgspec.json.encode(review)), type=_Review)
        if not answer.status.allowed:
            fix = f"kubectl apply -k manifests/{granted_by}"
            found.append(Finding("rights", f"{verb} {name}", "the right is missing", effect, fix))
    return found


def _by_plugin(configuration: SchedulerConfiguration) -> Iterator[_Right]:
    enabled = {entry.name for profile in configuration.profiles for entry in profile.plugins.multi_point.enabled}
    if "DefaultPreemption" in enabled:
        args = [profile.plugin_config.get("DefaultPreemption") for profile in configuration.profiles]
        strict = any(isinstance(each, DefaultPreemptionArgs) and each.pdb_policy is PDBPolicy.STRICT for each in args)
        yield _EVICT if strict else _DELETE
    if "VolumeBinding" in enabled:
        yield _VOLUMES
    if "DynamicResources" in enabled:
        yield from _DEVICES
