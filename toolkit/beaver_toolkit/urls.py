"""Which http addresses a configuration may hold, and which requests can be read on a network. Pure."""

import ipaddress
import re
from urllib.parse import SplitResult, urlsplit

LONGEST = 2048

# Printable ASCII without quotes, brackets, backslashes, and the signs that start a query or a fragment.
_URL = re.compile(r"""[!$&'()*+,\-./0-9:;=@A-Z\[\]_a-z~%]+""")
# A label is at most 63 characters long; other alphabets are written in punycode. Or an IPv6 address.
_LABEL = "[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*")
_ONLY_AN_IP = re.compile(r"[0-9]+(?:\.[0-9]+){3}|.*:.*")


def split(url: str) -> SplitResult | None:
    """Return the parts of an http or https address without user, query or fragment; `None` for anything else."""
    if len(url) > LONGEST or not _URL.fullmatch(url):
        return None
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    host = _host(parts)
    named = _HOST.fullmatch(host) is not None and (_ONLY_AN_IP.fullmatch(host) is None or _ip(host) is not None)
    return parts if parts.scheme in {"http", "https"} and named and "@" not in parts.netloc and port != 0 else None


def is_here(url: str) -> bool:
    """Return whether an address is on this machine."""
    host = _host(split(url))
    address = _ip(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def is_exposed(url: str, proxy: str | None = None) -> bool:
    """Return whether a request to `url` can be read on a network, or by a proxy on another machine."""
    parts = split(url)
    return parts is not None and parts.scheme == "http" and not (is_here(url) and (proxy is None or is_here(proxy)))


def _host(parts: SplitResult | None) -> str:
    return ((parts and parts.hostname) or "").removesuffix(".")


def _ip(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
