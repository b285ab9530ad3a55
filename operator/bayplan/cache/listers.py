"""Objects other than nodes and pods that plugins look up: claims, volumes, services, namespaces."""

from collections.abc import Callable, Collection, Iterable
from typing import Any, Generic, Protocol, TypeVar

from bayplan.api.meta_objects import ObjectMeta, key_of
from bayplan.cache.change_log import KeyFollower, KeyLog


class NamedObject(Protocol):
    """An API object as a lister keeps it."""

    @property
    def metadata(self) -> ObjectMeta:
        """Its identity."""


T = TypeVar("T", bound=NamedObject)
S = TypeVar("S")


class Lister(Generic[T]):
    """All objects of one kind as a watch or a file has them; plugins read it, one writer keeps it.

    `version` grows with every change, so that a reader can tell whether what it derived still holds, and `changes`
    tells of which objects. `synced` says whether the first list is in; a reader that finds nothing before that does
    not know.
    """

    __slots__ = ("_by_namespace", "changes", "objects", "synced")

    def __init__(self) -> None:
        self.objects: dict[str, T] = {}
        self.changes = KeyLog()
        self.synced = False
        self._by_namespace: dict[str, dict[str, T]] = {}

    def __len__(self) -> int:
        return len(self.objects)

    @property
    def version(self) -> int:
        """The position in `changes`."""
        return self.changes.position

    def get(self, key: str) -> T | None:
        """The object under "namespace/name" or, without a namespace, its name."""
        return self.objects.get(key)

    def in_namespace(self, namespace: str) -> Collection[T]:
        """The objects of one namespace, in the order they came."""
        return self._by_namespace.get(namespace, {}).values()

    def follower(self) -> KeyFollower:
        """A new reader's position in `changes`."""
        return KeyFollower(self.changes, self.objects)

    def set(self, obj: T) -> None:
        """Take in a new or changed object."""
        key = key_of(obj.metadata)
        self.objects[key] = obj
        self._by_namespace.setdefault(obj.metadata.namespace, {})[key] = obj
        self.changes.append(key)

    def delete(self, key: str) -> T | None:
        """Forget an object and return it; None if it was not there."""
        obj = self.objects.pop(key, None)
        if obj is None:
            return None
        namespace = obj.metadata.namespace
        objects = self._by_namespace[namespace]
        del objects[key]
        if not objects:
            del self._by_namespace[namespace]
        self.changes.append(key)
        return obj


class Listers:
    """One lister a kind, made when a plugin first asks: what nobody asks for need not be watched."""

    def __init__(self) -> None:
        self._listers: dict[type, Lister[Any]] = {}
        self._shared: dict[object, Any] = {}

    def of(self, kind: type[T]) -> Lister[T]:
        """The lister of a kind, such as `api.storage_objects.PersistentVolume`; asking makes the kind wanted."""
        lister = self._listers.get(kind)
        if lister is None:
            lister = self._listers[kind] = Lister()
        return lister

    def shared(self, make: Callable[["Listers"], S]) -> S:
        """What `make`, mostly a class, makes of the listers: made once, for plugins of all profiles."""
        if make not in self._shared:
            self._shared[make] = make(self)
        made: S = self._shared[make]
        return made

    def forget(self, kind: type) -> None:
        """Have nobody want a kind any more; whoever has its lister keeps it."""
        self._listers.pop(kind, None)

    def fill(self, objects: Iterable[NamedObject]) -> None:
        """Take in all that there is, for who watches nothing; what nobody asked for is left out."""
        wanted = self.wanted()
        for each in objects:
            if type(each) in wanted:
                lister: Lister[Any] = self.of(type(each))
                lister.set(each)
        for kind in wanted:
            self.of(kind).synced = True

    def wanted(self) -> Collection[type]:
        """The kinds somebody asked for; the controller watches these."""
        return tuple(self._listers)
