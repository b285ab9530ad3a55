"""Who is connected to the HTTP port, and whose connection goes when there are too many."""

import ipaddress
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


_V6_SITE_BITS = 64


def peer_of(address: str) -> str:
    """Return what the connections from an address are counted under: the address, or of IPv6 its network of 64 bits.

    One machine has all the addresses of such a network. An IPv4 address that came to an IPv6 socket is one of IPv4.
    What is no address is returned as it is.
    """
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, _V6_SITE_BITS), strict=False))
