"""Volumes and claims as they will be once the writes under way arrive (upstream: passive_assume_cache.go)."""

from typing import Generic, TypeVar

from bayplan.api.meta_objects import key_of
from bayplan.api.storage_objects import PersistentVolume, PersistentVolumeClaim
from bayplan.cache.change_log import KeyLog
from bayplan.cache.listers import Lister, Listers, NamedObject
from bayplan.plugins.volumes.claims import VolumeError

T = TypeVar("T", bound=NamedObject)


class AssumeCache(Generic[T]):
    """Shows the objects of a lister, some of them replaced by what they are assumed to become.

    An assumption holds while the lister has the version it was made from; any newer version ends it. Pods that share a
    claim may assume it several times: then the latest assumption counts, and each is restored by itself. `changes`
    logs the keys of objects that were assumed or restored.
    """

    def __init__(self, lister: Lister[T]) -> None:
        self.lister = lister
        self.changes = KeyLog()
        self._assumed: dict[str, list[T]] = {}

    def get(self, key: str) -> T | None:
        """Return the object as it is assumed to become, or as the API server has it."""
        obj = self.lister.get(key)
        if obj is None or not self._assumed:
            return obj
        version = obj.metadata.resource_version
        assumed = reversed(self._assumed.get(key, ()))
        return next((each for each in assumed if each.metadata.resource_version == version), obj)

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
        """End one assumption `obj`, and no other that was made of the same object; nothing happens if it has ended."""
        key = key_of(obj.metadata)
        assumed = self._assumed.get(key, [])
        at = next((index for index, each in enumerate(assumed) if each is obj), None)
        if at is None:
            return
        del assumed[at]
        if not assumed:
            del self._assumed[key]
        self.changes.append(key)


class AssumeCaches:
    """The assume caches of claims and volumes, shared by all profiles so that no two pods get the same volume."""

    def __init__(self, listers: Listers) -> None:
        self.volumes = AssumeCache(listers.of(PersistentVolume))
        self.claims = AssumeCache(listers.of(PersistentVolumeClaim))
