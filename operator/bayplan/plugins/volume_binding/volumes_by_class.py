"""All volumes, sorted onto shelves by storage class, as they are assumed to be."""

from bayplan.api.storage_objects import PersistentVolume
from bayplan.plugins.volume_binding.assumptions import AssumedObjects
from bayplan.plugins.volume_binding.class_volumes import VolumeShelf
from bayplan.plugins.volumes.claims import volume_class


class VolumeStock:
    """Follows the volumes of a lister and what is assumed of them; a shelf is never older than both."""

    def __init__(self, volumes: AssumedObjects[PersistentVolume]) -> None:
        self._volumes = volumes
        self._listed_at = 0
        self._assumed_at = 0
        self._shelves: dict[str, VolumeShelf] = {}
        self._known: dict[str, tuple[str, str]] = {}
        """Class and UID of each volume, by name."""

    def shelf(self, class_name: str) -> VolumeShelf:
        """The volumes of a class."""
        self._catch_up()
        return self._shelves.get(class_name) or VolumeShelf()

    def _catch_up(self) -> None:
        lister = self._volumes.lister
        listed_at, self._listed_at = self._listed_at, lister.version
        assumed_at, self._assumed_at = self._assumed_at, self._volumes.changes.position
        listed = lister.changes.since(listed_at) if listed_at != self._listed_at else []
        assumed = self._volumes.changes.since(assumed_at) if assumed_at != self._assumed_at else []
        if listed is None or assumed is None:
            self._shelves.clear()
            self._known.clear()
            listed, assumed = list(lister.objects), []
        for name in dict.fromkeys([*listed, *assumed]):
            self._take(name)

    def _take(self, name: str) -> None:
        volume = self._volumes.get(name)
        known = self._known.pop(name, None)
        identity = None if volume is None else (volume_class(volume), volume.metadata.uid)
        if known is not None and known != identity:
            shelf = self._shelves[known[0]]
            shelf.drop(name)
            if shelf.is_empty:
                del self._shelves[known[0]]
        if volume is not None and identity is not None:
            self._known[name] = identity
            self._shelves.setdefault(identity[0], VolumeShelf()).put(volume)
