"""Who is connected to the HTTP port, and whose connection goes when there are too many."""

from typing import Generic, TypeVar

Connection = TypeVar("Connection")


class Connections(Generic[Connection]):
    """Bounds the open connections, in all and of each peer, so that whoever comes next always finds room.

    HttpServer relies on it: a probe is a new connection, and is never the one that has to go. `per_peer` and `total`
    are numbers of connections.
    """

    def __init__(self, *, per_peer: int, total: int) -> None:
        self._per_peer = per_peer
        self._total = total
        # Dictionaries keep the order of coming.
        self._by_peer: dict[str, dict[Connection, None]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, peer: str, connection: Connection) -> Connection | None:
        """Count a new connection, and return the one that the caller has to close for it, which counts no longer.

        It is the oldest of the peer, if that has too many. Otherwise, of too many in all, the oldest of the peer that
        has most; of peers with equally many, the one that came first.
        """
        own = self._by_peer.setdefault(peer, {})
        own[connection] = None
        self._count += 1
        if len(own) > self._per_peer:
            greediest = peer
        elif self._count > self._total:
            greediest = max(self._by_peer, key=lambda each: len(self._by_peer[each]))
        else:
            return None
        oldest = next(iter(self._by_peer[greediest]))
        self.remove(greediest, oldest)
        return oldest

    def remove(self, peer: str, connection: Connection) -> None:
        """Forget a connection that ended; one that is not counted is none of its business."""
        own = self._by_peer.get(peer, {})
        if connection not in own:
            return
        del own[connection]
        self._count -= 1
        if not own:
            del self._by_peer[peer]
