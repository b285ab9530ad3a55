"""Volumes and claims as they will be once the writes under way arrive.

Upstream: plugins/volumebinding/passive_assume_cache.go.
"""

from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from bayplan.api.storage_objects import PersistentVolume, PersistentVolumeClaim
from bayplan.cache.change_log import KeyLog
from bayplan.cache.listers import Lister, Listers, NamedObject, key_of
from bayplan.plugins.volumes.claims import VolumeError

T = TypeVar("T", bound=NamedObject)


class AssumedObjects(Generic[T]):
    """A lister's objects, some of them replaced by what they are assumed to become.

    An assumption holds while the lister has the version it was made of; any newer version ends it. Of several, as pods
    that share a claim make, the latest counts, and each ends by itself. `changes` tells which were made and ended here.
    """

    def __init__(self, lister: Lister[T]) -> None:
        self.lister = lister
        self.changes = KeyLog()
        self._assumed: dict[str, list[T]] = {}

    def get(self, key: str) -> T | None:
        """The object, assumed or as the API has it."""
        obj = self.lister.get(key)
        return obj if obj is None or not self._assumed else self.current(obj)

    def current(self, obj: T) -> T:
        """What an object of the lister is assumed to become, or itself."""
        made = self._assumed.get(key_of(obj.metadata), ())
        version = obj.metadata.resource_version
        return next((assumed for assumed in reversed(made) if assumed.metadata.resource_version == version), obj)

    def assume(self, obj: T) -> None:
        """Let the object count as changed.

        Raises:
            VolumeError: the lister has another version of it by now.
        """
        key = key_of(obj.metadata)
        stored = self.lister.get(key)
        if stored is None or stored.metadata.resource_version != obj.metadata.resource_version:
            version = "" if stored is None else stored.metadata.resource_version
            raise VolumeError(
                f'"{key}" is out of sync (stored: {version}, assume: {obj.metadata.resource_version})',
            )
        self._assumed.setdefault(key, []).append(obj)
        self.changes.append(key)

    def restore(self, obj: T) -> None:
        """End the assumption `obj`, and no other that was made of the same object."""
        key = key_of(obj.metadata)
        made = self._assumed.get(key, [])
        left = [assumed for assumed in made if assumed is not obj]
        if len(left) == len(made):
            return
        if left:
            self._assumed[key] = left
        else:
            del self._assumed[key]
        self.changes.append(key)


class AssumedVolumes:
    """What the VolumeBinding plugins of all profiles assume, so that no two pods get the same volume."""

    def __init__(self, listers: Listers) -> None:
        self.volumes = AssumedObjects(listers.of(PersistentVolume))
        self.claims = AssumedObjects(listers.of(PersistentVolumeClaim))

    @classmethod
    def over(cls, listers: Listers) -> "AssumedVolumes":
        """The one instance for these listers."""
        assumed = _OVER.get(listers)
        if assumed is None:
            assumed = _OVER[listers] = cls(listers)
        return assumed


_OVER: WeakKeyDictionary[Listers, AssumedVolumes] = WeakKeyDictionary()
