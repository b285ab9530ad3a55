"""The sockets of a port, on every address that it is asked for."""

import asyncio
import ipaddress
import socket

BACKLOG = 128
# What the kernel keeps for a connection, and so what is read of it at once: a long head of a request.
RECEIVE_BYTES = 32 * 1024


async def listening_sockets(host: str, port: int, *, shares_port: bool = False) -> list[socket.socket]:
    """Listen at every address of `host`, at a free port if `port` is 0; HttpServer relies on it.

    Nothing, `0.0.0.0` and `::` stand for all addresses, of IPv6 as well where there is IPv6. With `shares_port`
    several processes may listen at the same port.

    Raises:
        OSError: an address cannot be found or listened at; nothing is left open.
    """
    sockets: list[socket.socket] = []
    try:
        if _is_all(host) and socket.has_dualstack_ipv6():
            everywhere = socket.create_server(
                ("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=BACKLOG, reuse_port=shares_port
            )
            sockets.append(everywhere)
        else:
            asked = "0.0.0.0" if _is_all(host) else host  # noqa: S104  what was asked for
            loop = asyncio.get_running_loop()
            found = await loop.getaddrinfo(asked, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            for family, *_, address in dict.fromkeys(found):
                listening = socket.create_server(
                    (str(address[0]), port), family=family, backlog=BACKLOG, reuse_port=shares_port
                )
                sockets.append(listening)
                port = listening.getsockname()[1]
    except OSError:
        for each in sockets:
            each.close()
        raise
    for each in sockets:
        each.setblocking(False)
        # Connections have it from the socket that listens.
        each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
    return sockets


def _is_all(host: str) -> bool:
    try:
        return host == "" or ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False
