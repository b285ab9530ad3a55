"""Which HTTP proxy, if any, stands between bayplan and an API server."""

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit


def proxy_from_environment(server: str, environment: Mapping[str, str]) -> str | None:
    """Return the proxy for `server` as Go's net/http finds it, or None; `Credentials` relies on it.

    HTTPS_PROXY or HTTP_PROXY by the server's scheme, upper case first, unless NO_PROXY names the server.
    Loopback addresses are never proxied.
    """
    parts = urlsplit(server)
    host = (parts.hostname or "").lower()
    if host == "localhost" or _is_loopback(host):
        return None
    variable = f"{parts.scheme}_proxy"
    proxy = environment.get(variable.upper()) or environment.get(variable)
    if not proxy:
        return None
    exceptions = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    if any(_excludes(rule.strip().lower(), host, parts.port) for rule in exceptions.split(",")):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _excludes(rule: str, host: str, port: int | None) -> bool:
    if not rule:
        return False
    if rule == "*":
        return True
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(rule, strict=False)
    except ValueError:
        pass
    name, colon, rule_port = rule.rpartition(":")
    if colon and rule_port.isdigit():
        if port is not None and rule_port != str(port):
            return False
        rule = name
    suffix = rule.removeprefix("*").removeprefix(".")
    if rule.startswith((".", "*")):
        return host.endswith(f".{suffix}")
    return host == suffix or host.endswith(f".{suffix}")
