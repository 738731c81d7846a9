"""How the app is reached: under which host names it is served, and which headers of a proxy are trusted.

A page of another site can let its own name point to this machine ("DNS rebinding"), and would then read the app as if it were its
own; so an app that listens on localhost is served under localhost's names only. Headers that a proxy sets can be set by a visitor,
too, unless there is a proxy that replaces them; so they are trusted only where whoever runs the app says that there is one.
The variables that say so are those of docs/SHARING.md.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import Scope

from vit_viz.images.preprocess import MAX_CHOSEN_PATCHES
from vit_viz.settings import setting, switch, whole_number

VISITORS_PATCHES = 1024
"""Of an image whose size is chosen, in an app that is shared: 4,096 of one visitor would keep all others waiting."""

_LOCAL_FRAMES = ("http://localhost:*", "http://127.0.0.1:*")  # a notebook shows the page in a frame
_SPACE_FRAMES = ("https://huggingface.co", "https://*.hf.space")
_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9_-]+(\.[a-z0-9_-]+)*)\.?(:[0-9]{1,5})?", re.ASCII)
_FORWARDED = (b"forwarded", b"x-forwarded-", b"x-real-ip", b"x-gradio-server")


@dataclass(frozen=True)
class Exposure:
    """Names, frames and proxies of one running app.

    Args:
        hosts: names under which it is served, beside localhost's; None serves any name.
        addresses_as_hosts: whether the machine's own network addresses count as names; no page can rebind those.
        frames, connects: sources whose pages may show this one in a frame, and that the page may ask, as its policy writes them.
        address_header: the header that says a visitor's network address, in lower case; "" for none.
        is_shared: whether others than the owner of this machine may come: it listens beyond it, or a proxy or a tunnel leads here.
    """

    hosts: frozenset[str] | None = frozenset()
    addresses_as_hosts: bool = False
    frames: tuple[str, ...] = _LOCAL_FRAMES
    connects: tuple[str, ...] = ()
    believes_proxy: bool = False
    address_header: str = ""
    is_shared: bool = False

    @classmethod
    def of(
        cls, server_name: str, *, share: bool = False, environment: Mapping[str, str] = os.environ
    ) -> Exposure:
        """The exposure of an app that listens on a name, or shares itself by Gradio's tunnel."""
        space = environment.get("SPACE_HOST", "")
        named = _names(environment.get("VIT_VIZ_HOSTS", "")) or _names(space)
        is_local = _is_loopback(server_name.lower())
        is_any = "*" in named or share or not (named or is_local)
        behind_proxy = bool(space) or switch("VIT_VIZ_BEHIND_PROXY", environment)
        return cls(
            hosts=None if is_any else named,
            addresses_as_hosts=not is_local or bool(space),
            frames=_SPACE_FRAMES if space else _LOCAL_FRAMES if is_local and not share else (),
            connects=_SPACE_FRAMES[:1] if space else (),
            believes_proxy=behind_proxy,
            address_header=setting("VIT_VIZ_ADDRESS_HEADER", environment).lower(),
            is_shared=share or bool(named) or behind_proxy or not is_local,
        )

    @property
    def max_patches(self) -> int:
        """Of an image whose size is chosen."""
        usual = VISITORS_PATCHES if self.is_shared else MAX_CHOSEN_PATCHES
        return whole_number("VIT_VIZ_MAX_PATCHES", usual, unit="patches")

    def serves(self, named: Sequence[str]) -> bool:
        """Whether the app answers to the Host headers of a request: one that is a name or an address, perhaps with a port."""
        name = _name(named[0]) if len(named) == 1 else ""
        if self.hosts is None:
            return bool(name) or not named  # HTTP/1.0 has none
        is_address = self.addresses_as_hosts and _address(name) is not None
        return is_address or _is_loopback(name) or name in self.hosts

    def believed(self, scope: Scope) -> Scope:
        """A request without the headers that no trusted proxy has set, and without Range: a hundred parts of a file cost a hundred
        times what the file does."""
        trusted = self.address_header.encode("latin-1", "replace")
        dropped = (b"range",) if self.believes_proxy else (b"range", *_FORWARDED)
        kept = [one for one in scope["headers"] if one[0] == trusted or not one[0].startswith(dropped)]
        return {**scope, "headers": kept}

    def address(self, scope: Scope) -> str:
        """The network address of a visitor, where it tells visitors apart; "" where a proxy or this machine stands for all."""
        if self.address_header:
            values = ",".join(Headers(scope=scope).getlist(self.address_header))  # a proxy may add a line
            return _network(_address(values.rpartition(",")[2].strip()))
        client = _address((scope.get("client") or ("", 0))[0])
        return _network(client) if client is not None and client.is_global else ""


def _names(text: str) -> frozenset[str]:
    """Names with commas between, perhaps as addresses with a scheme, a port, a path; * for any."""
    hosts = (one.rpartition("://")[2].partition("/")[0].strip() for one in text.split(","))
    return frozenset(filter(None, ("*" if one == "*" else _name(one) for one in hosts)))


def _name(host: str) -> str:
    """The name or address in a host, without brackets, port and last dot; "" where it is none."""
    match = _HOST.fullmatch(host.lower())
    return match["name"].strip("[]") if match else ""


def _is_loopback(name: str) -> bool:
    address = _address(name)
    is_ours = name == "localhost" or name.endswith(".localhost")
    return is_ours or (address is not None and address.is_loopback)


def _network(address: ipaddress.IPv4Address | ipaddress.IPv6Address | None) -> str:
    """The part of an address that one visitor controls: an IPv4 address, or the first 64 bits of IPv6."""
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((address, 64), strict=False))
    return "" if address is None else str(address)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
