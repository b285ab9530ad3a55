"""Who counts as one client."""

import ipaddress

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
