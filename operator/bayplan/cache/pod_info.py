"""A pod with everything a scheduling cycle asks of it worked out once."""

from collections.abc import Hashable
from typing import Any, Final

import msgspec
from msgspec import structs

from bayplan.api.objects import Pod, PodStatus
from bayplan.cache.affinity_terms import PodAffinityTerms, affinity_terms
from bayplan.cache.container_requests import HostPort, host_ports
from bayplan.cache.recently_used import RecentlyUsed
from bayplan.cache.resources import (
    PodRequests,
    encoded,
    encoded_size,
    placed_requests,
    pod_requests,
    takes_what_it_asks,
)

_STAY = ("DaemonSet", "Node")
"""Which controllers keep a pod to its node: the mirror of a static pod belongs to its Node."""
_BYTES_PER_ENCODED_BYTE = 48
"""What a pod takes in memory at most, with all that is derived, for a byte of it as encoded; most take 5 to 25."""

KEPT_BYTES: Final = 48 * 2**20
"""What the kept models take, as `PodInfo.size` counts it: of ordinary pods some thousands."""

_LARGEST = 8192
"""Templates of more bytes, as encoded, are not kept."""

_Key = tuple[str, tuple[tuple[str, str], ...], bytes]


class Signature(msgspec.Struct, eq=False):
    """What a profile takes a pod for, shared by pods of one template; it holds while `inputs`, beside the pod, do."""

    inputs: tuple[object, ...]
    value: Hashable


def stays_on_its_node(pod: Pod) -> bool:
    """Whether a DaemonSet or a Node controls the pod, so that it could run nowhere else.

    What counts as a node in use, what a drain evicts and what can be placed anew all depend on it.
    """
    return any(each.controller and each.kind in _STAY for each in pod.metadata.owner_references or ())


class PodInfo:
    """A pod and what scheduling derives from it, computed once per object version and shared by queue, cache and cycle.

    Its identity is `uid`: a recreated pod is another pod.
    """

    __slots__ = (
        "__weakref__",
        "_affinity_terms",
        "_host_ports",
        "_placed",
        "_requests",
        "_size",
        "name",
        "namespace",
        "pod",
        "priority",
        "signature",
        "stays",
        "uid",
    )

    def __init__(self, pod: Pod) -> None:
        meta = pod.metadata
        self.pod = pod
        self.name = meta.name
        self.namespace = meta.namespace
        self.uid = meta.uid
        self.priority = pod.spec.priority or 0
        self.stays = stays_on_its_node(pod)
        """Whether it could run nowhere else, as `stays_on_its_node` says."""
        self.signature: Signature | None = None
        """As the profile has it that signed the pod last."""
        self._affinity_terms: PodAffinityTerms | None = None
        self._host_ports: tuple[HostPort, ...] | None = None
        self._requests: PodRequests | None = None
        self._placed: PodRequests | None = None
        self._size = 0

    @property
    def key(self) -> str:
        """The pod as "namespace/name", for people and logs."""
        return f"{self.namespace}/{self.name}"

    @property
    def is_terminating(self) -> bool:
        """Whether its deletion has begun; it stays until its grace period and its finalizers are done."""
        return self.pod.metadata.deletion_timestamp is not None

    @property
    def requests(self) -> PodRequests:
        """What an incoming pod asks for: from its spec alone."""
        if self._requests is None:
            self._requests = pod_requests(self.pod)
        return self._requests

    @property
    def placed(self) -> PodRequests:
        """What the pod takes on its node: as `requests`, and the status of an in-place resize."""
        if self._placed is None:
            self._placed = self.requests if takes_what_it_asks(self.pod) else placed_requests(self.pod)
        return self._placed

    @property
    def host_ports(self) -> tuple[HostPort, ...]:
        """The host ports the pod takes, sorted."""
        if self._host_ports is None:
            self._host_ports = host_ports(self.pod)
        return self._host_ports

    @property
    def affinity_terms(self) -> PodAffinityTerms:
        """The pod affinity and anti-affinity terms; NO_TERMS itself for pods without any."""
        if self._affinity_terms is None:
            self._affinity_terms = affinity_terms(self.pod)
        return self._affinity_terms

    @property
    def size(self) -> int:
        """About how many bytes it takes in memory with all that is derived; whoever keeps pods counts them so."""
        if not self._size:
            meta = self.pod.metadata
            said = "" if meta.annotations is None else meta.annotations.expected_duration or ""
            self._size = _BYTES_PER_ENCODED_BYTE * (encoded_size((meta.labels, self.pod.spec)) + len(said))
        return self._size

    def with_spec(self, status: PodStatus | None = None, **changes: Any) -> "PodInfo":  # noqa: ANN401 - of any field
        """Return the pod with other fields of its spec, and maybe another status; what-if questions rely on it.

        Nothing is derived of it yet.
        """
        spec = structs.replace(self.pod.spec, **changes)
        return PodInfo(Pod(self.pod.metadata, spec, status or self.pod.status))

    def share_terms_of(self, before: "PodInfo") -> None:
        """Share the affinity terms of an earlier version of the pod if it has the same: working them out takes long."""
        terms = before._affinity_terms  # noqa: SLF001 - a private name of another of the same kind
        if terms and self._affinity_terms is None and self.pod.spec.affinity == before.pod.spec.affinity:
            self._affinity_terms = terms

    def take_over(self, model: "PodInfo") -> None:
        """Share what `model`, a pod of the same namespace and spec, has derived from these already."""
        # Private names of another of the same kind.
        self._size = self._size or model._size  # noqa: SLF001 - as above
        self._requests = self._requests or model._requests  # noqa: SLF001 - as above
        self._host_ports = self._host_ports or model._host_ports  # noqa: SLF001 - as above
        self._affinity_terms = self._affinity_terms or model._affinity_terms  # noqa: SLF001 - as above

    def __repr__(self) -> str:
        return f"PodInfo({self.key!r})"


class PodTemplates:
    """Knows pods by what a template gives them: namespace, labels, owners and spec; signatures of pods rely on it."""

    def __init__(self) -> None:
        self._models: RecentlyUsed[_Key, PodInfo] = RecentlyUsed(KEPT_BYTES, lambda _, model: model.size)

    def model_of(self, pod: PodInfo) -> PodInfo:
        """The first pod seen that is as `pod` in all that a template gives; `pod` itself if there was none.

        Whatever was worked out for the model from that alone, `pod` takes over.
        """
        key = _key(pod)
        if key is None:
            return pod
        model = self._models.get(key)
        if model is None:
            return self._models.put(key, pod)
        pod.take_over(model)
        return model


def _key(pod: PodInfo) -> _Key | None:
    meta = pod.pod.metadata
    rest = encoded((pod.pod.spec, meta.owner_references), largest=_LARGEST)
    return None if rest is None else (meta.namespace, tuple((meta.labels or {}).items()), rest)
