"""Extended resources, such as nvidia.com/gpu, that a DeviceClass provides where no device plugin does."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from bayplan.api.device_objects import DeviceClass
from bayplan.api.meta_objects import parse_time
from bayplan.cache.listers import Listers
from bayplan.cache.pod_info import PodInfo

PREFIX: Final = "deviceclass.resource.kubernetes.io/"
"""With a class's name, the resource that every class provides whatever its spec says."""


NO_CLASSES: Final[Mapping[str, str]] = MappingProxyType({})


class ExtendedResources:
    """Knows by which class each extended resource is provided; NodeResourcesFit and DynamicResources ask it.

    Of two classes that name one resource the newer one counts, of those of one age the first by name. (upstream:
    dynamic-resource-allocation/deviceclass/extendedresourcecache, which forgets the other one when that one goes)
    """

    def __init__(self, listers: Listers) -> None:
        self._lister = listers.of(DeviceClass)
        self._made_of = 0
        self._classes: dict[str, str] = {}

    @property
    def classes(self) -> Mapping[str, str]:
        """The name of the class of each resource that one provides."""
        if not self._lister.objects:
            return NO_CLASSES
        if self._made_of != (version := self._lister.version):
            self._made_of = version
            by_age = sorted(self._lister.objects.values(), key=_precedence, reverse=True)
            named = {name: each.metadata.name for each in by_age if (name := each.spec.extended_resource_name)}
            self._classes = named | {PREFIX + name: name for name in self._lister.objects}
        return self._classes

    def asked_by(self, pod: PodInfo) -> dict[str, str]:
        """Return the resources that the pod asks for and a class provides, with their classes, in order of name."""
        if not self._lister.objects:
            return {}
        classes = self.classes
        return {name: classes[name] for name in sorted(pod.requests.amounts) if name in classes}


def _precedence(each: DeviceClass) -> tuple[float, str]:
    """The smaller, the sooner a class counts."""
    try:
        created = parse_time(each.metadata.creation_timestamp or "")
    except ValueError:
        created = 0.0
    return -created, each.metadata.name
