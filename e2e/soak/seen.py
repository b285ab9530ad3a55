"""What the soak reads of a pod, and nothing else of it."""

import msgspec


class Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None


class Resources(msgspec.Struct):
    requests: dict[str, str] | None = None


class Container(msgspec.Struct):
    name: str = ""
    resources: Resources | None = None

    @property
    def requests(self) -> dict[str, str]:
        return (self.resources and self.resources.requests) or {}


class ContainerStatus(msgspec.Struct, rename="camel"):
    name: str = ""
    allocated_resources: dict[str, str] | None = None


class Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""
    containers: list[Container] = []


class Status(msgspec.Struct, rename="camel"):
    phase: str = ""
    container_statuses: list[ContainerStatus] | None = None


class SeenPod(msgspec.Struct):
    """A pod as a list or a watch shows it."""

    metadata: Metadata
    spec: Spec = msgspec.field(default_factory=Spec)
    status: Status = msgspec.field(default_factory=Status)

    @property
    def allocated(self) -> dict[str, dict[str, str]]:
        """What the kubelet says it has allocated, by container."""
        statuses = self.status.container_statuses or []
        return {each.name: each.allocated_resources for each in statuses if each.allocated_resources is not None}

    @property
    def is_reported(self) -> bool:
        """Whether the kubelet has said that it runs, with the resources that its spec asks for."""
        allocated = self.allocated
        return self.status.phase == "Running" and all(
            allocated.get(each.name) == each.requests for each in self.spec.containers
        )


class ListMetadata(msgspec.Struct, rename={"resource_version": "resourceVersion", "continue_token": "continue"}):
    resource_version: str = ""
    continue_token: str = ""


class PodList(msgspec.Struct):
    """A page of pods."""

    metadata: ListMetadata
    items: list[SeenPod] | None = None


class PodEvent(msgspec.Struct):
    """One line of a watch; `object` is a pod, or a Status where `type` is ERROR."""

    type: str
    object: msgspec.Raw


class Bookmark(msgspec.Struct):
    """What a watch says where nothing happened; its pod has no containers, not even none."""

    metadata: Metadata


pod_event_decoder = msgspec.json.Decoder(PodEvent)
pod_decoder = msgspec.json.Decoder(SeenPod)
bookmark_decoder = msgspec.json.Decoder(Bookmark)
pod_list_decoder = msgspec.json.Decoder(PodList)
