"""Which addresses an embedding provider may have, and which of them can be listened to on the way. Pure."""

import ipaddress
import re
from urllib.parse import SplitResult, urlsplit

LONGEST = 2048

# Printable ASCII without blanks, quotes, brackets, backslashes, and what starts a query or a fragment.
_URL = re.compile(r"[!$&'()*+,\-./0-9:;=A-Z\[\]_a-z~%]+")


def split(url: str) -> SplitResult | None:
    """Return the parts of an http or https address without user, query or fragment, or `None`."""
    if len(url) > LONGEST or not _URL.fullmatch(url):
        return None
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    return parts if parts.scheme in {"http", "https"} and parts.hostname and port != 0 else None


def is_here(url: str) -> bool:
    """Whether an address is on this machine."""
    parts = split(url)
    host = ((parts and parts.hostname) or "").removesuffix(".")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_exposed(url: str) -> bool:
    """Whether what is sent to an address can be read on a network."""
    parts = split(url)
    return parts is not None and parts.scheme == "http" and not is_here(url)
