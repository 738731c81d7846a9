"""Host names under which the app answers, headers that are believed, and network addresses of visitors."""

from __future__ import annotations

import pytest
from starlette.types import Scope

from vit_viz.errors import ParameterError
from vit_viz.ui.edge.exposure import Exposure

SPACE = {"SPACE_HOST": "ada-vit.hf.space"}
FORWARDED = {
    "forwarded": "for=8.8.8.8",
    "x-forwarded-for": "8.8.8.8",
    "x-forwarded-host": "evil.example",
    "x-forwarded-proto": "https",
    "x-real-ip": "8.8.8.8",
    "x-gradio-server": "https://evil.example",
}


def scope(*headers: tuple[str, str], client: str | None = "127.0.0.1") -> Scope:
    """A request with these headers from this peer."""
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    return {"type": "http", "headers": raw, "client": client and (client, 4711)}


def names(request: Scope) -> set[str]:
    return {name.decode() for name, _ in request["headers"]}


LOCAL_HOSTS = [
    *("localhost", "localhost:7860", "LOCALHOST:7860", "localhost.", "LocalHost.:80"),
    *("127.0.0.1", "127.0.0.1:7860", "127.8.9.10:7860", "[::1]", "[::1]:7860", "vit.localhost:7860"),
]
FOREIGN_NAMES = [
    *("evil.example", "evil.example:7860", "localhost.evil.example", "127.0.0.1.evil.example"),
    *("notlocalhost", "xn--lcalhost-x2b"),
]
NETWORK_ADDRESSES = [
    "192.168.3.4:7860",
    "10.0.0.5",
    "8.8.8.8",
    "[2001:db8::5]:7860",
    "0.0.0.0:7860",
    "[2001:db8::7]",
]
ODD_HOSTS = [
    *(
        "",
        ":",
        ":7860",
        ".",
        "[",
        "[]",
        "::1:",
        "::1",
        "\0",
        "localhost:",
        "localhost:x",
        "localhost:80:80",
        "localhost:123456",
    ),
    *(
        " localhost",
        "localhost ",
        "local host",
        "localhost..",
        ".localhost",
        "a@localhost",
        "localhost/x",
        "localhost?",
        "[::1]x",
    ),
    *(
        "[::1",
        "localhost,evil.example",
        "<b>.localhost",
        "localhost\n",
        "löcalhost",
        "evil.example:localhost",
        "[::1]:x",
    ),
]
"""Nobody is served under what is no name and no address."""


ANY = [*LOCAL_HOSTS, *FOREIGN_NAMES, *NETWORK_ADDRESSES, "2130706433", "127.1"]
NAMED = {"VIT_VIZ_HOSTS": " vit.example.org, Other.Example.:443,,[2001:db8::7]:80 "}
OF_NAMED = ["vit.example.org", "VIT.example.ORG:7860", "vit.example.org.", "other.example", "[2001:db8::7]"]
OF_SPACE = ["ada-vit.hf.space", "ADA-vit.hf.space:443"]
STAR = {"VIT_VIZ_HOSTS": "vit.example.org, *"}


@pytest.mark.parametrize(
    ("exposure", "served"),
    [
        (Exposure(), LOCAL_HOSTS),
        *((Exposure.of(server, environment={}), LOCAL_HOSTS) for server in ("LOCALHOST", "127.0.0.2", "::1")),
        *((Exposure.of(server, environment={}), ANY) for server in ("0.0.0.0", "::", "192.168.3.4", "vit.example.org")),
        # a page of another site can rebind a name, and no network address
        (Exposure.of("0.0.0.0", environment=NAMED), [*LOCAL_HOSTS, *NETWORK_ADDRESSES, *OF_NAMED]),
        (Exposure.of("127.0.0.1", environment=NAMED), [*LOCAL_HOSTS, *OF_NAMED]),
        *((Exposure.of(server, environment=STAR), ANY) for server in ("127.0.0.1", "0.0.0.0")),
        (Exposure.of("127.0.0.1", share=True, environment={}), ANY),
        *((Exposure.of(server, environment=SPACE), [*LOCAL_HOSTS, *NETWORK_ADDRESSES, *OF_SPACE])
          for server in ("127.0.0.1", "0.0.0.0")),
        (Exposure.of("0.0.0.0", environment=SPACE | NAMED), [*LOCAL_HOSTS, *NETWORK_ADDRESSES, *OF_NAMED]),
    ],
)  # fmt: skip
def test_these_host_names_are_served_and_no_others(exposure: Exposure, served: list[str]) -> None:
    others = ["sub.vit.example.org", "eve-vit.hf.space", "hf.space", *OF_NAMED, *OF_SPACE, *ANY]
    assert [host for host in served if not exposure.serves([host])] == []
    assert [host for host in ODD_HOSTS if exposure.serves([host])] == []
    assert not exposure.serves(["localhost", "localhost"])
    assert exposure.serves([]) == (served is ANY)  # as HTTP/1.0 asks
    if served is not ANY:
        assert [host for host in others if host not in served and exposure.serves([host])] == []


def test_frames_are_those_of_notebooks_or_of_the_space() -> None:
    local, space = Exposure.of("localhost", environment={}), Exposure.of("0.0.0.0", environment=SPACE)
    assert local.frames == ("http://localhost:*", "http://127.0.0.1:*")
    assert space.frames == ("https://huggingface.co", "https://*.hf.space")
    assert Exposure.of("0.0.0.0", environment={}).frames == ()
    assert Exposure.of("localhost", share=True, environment={}).frames == ()


@pytest.mark.parametrize("environment", [{}, {"VIT_VIZ_BEHIND_PROXY": "0"}])
def test_headers_of_a_proxy_are_dropped_unless_there_is_one(environment: dict[str, str]) -> None:
    request = scope(("host", "localhost"), *FORWARDED.items(), ("cookie", "x"), ("x-forward", "kept"))
    believed = Exposure.of("0.0.0.0", environment=environment).believed(request)
    assert names(believed) == {"host", "cookie", "x-forward"}
    assert names(request) == {"host", "cookie", "x-forward", *FORWARDED}  # the request itself is as it was


@pytest.mark.parametrize("environment", [{"VIT_VIZ_BEHIND_PROXY": "1"}, SPACE])
def test_headers_of_a_proxy_are_believed_where_there_is_one(environment: dict[str, str]) -> None:
    request = scope(("host", "localhost"), *FORWARDED.items(), ("range", "bytes=0-0,2-2"))
    assert names(Exposure.of("0.0.0.0", environment=environment).believed(request)) == {"host", *FORWARDED}


def test_nobody_gets_parts_of_a_file() -> None:
    """A request of 800 bytes for a hundred of them took ten times as long as the file."""
    request = scope(("host", "localhost"), ("range", "bytes=0-0,2-2"), ("if-range", "x"))
    assert names(Exposure.of("localhost", environment={}).believed(request)) == {"host", "if-range"}


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        ("8.8.8.8", "8.8.8.8"),
        ("2a00:1450:4001::5", "2a00:1450:4001::/64"),  # one visitor has all of it
        ("192.168.3.4", ""),  # of a network behind one address, or of a proxy
        ("10.0.0.7", ""),
        ("fd00::3", ""),
        ("127.0.0.1", ""),
        ("::1", ""),
        ("169.254.1.2", ""),
        ("testclient", ""),
        ("", ""),
        (None, ""),
    ],
)
def test_the_address_of_a_visitor_is_that_of_a_peer_on_the_internet(peer: str | None, address: str) -> None:
    exposure = Exposure.of("0.0.0.0", environment={})
    assert exposure.address(scope(*FORWARDED.items(), client=peer)) == address


@pytest.mark.parametrize(
    ("header", "address"),
    [
        ("8.8.4.4", "8.8.4.4"),
        ("192.168.3.4", "192.168.3.4"),  # the proxy knows who is who
        ("1.1.1.1, 8.8.4.4", "8.8.4.4"),  # what stands before the last came from the visitor
        ("8.8.4.4,1.1.1.1 ", "1.1.1.1"),
        ("2a00:1450::5", "2a00:1450::/64"),
        ("8.8.4.4, nonsense", ""),
        ("8.8.4.4,", ""),
        ("8.8.4.4:80", ""),
        ("\xe9\x00", ""),
        ("", ""),
    ],
)
def test_the_address_is_the_last_value_of_the_header_that_is_named(header: str, address: str) -> None:
    exposure = Exposure.of("0.0.0.0", environment={"VIT_VIZ_ADDRESS_HEADER": " X-Client-Address "})
    request = scope(("x-client-address", header), ("x-forwarded-for", "9.9.9.9"), client="8.8.8.8")
    assert exposure.address(request) == address


def test_of_several_headers_of_the_name_the_last_counts() -> None:
    exposure = Exposure.of("0.0.0.0", environment={"VIT_VIZ_ADDRESS_HEADER": "x-client-address"})
    request = scope(("x-client-address", "1.1.1.1"), ("x-client-address", "9.9.9.9, 8.8.4.4"))
    assert exposure.address(request) == "8.8.4.4"
    assert exposure.address(scope(client="8.8.8.8")) == ""  # whoever sends none has none


def test_the_header_that_is_named_is_believed_and_no_other() -> None:
    exposure = Exposure.of("0.0.0.0", environment={"VIT_VIZ_ADDRESS_HEADER": "X-Forwarded-For"})
    believed = exposure.believed(scope(*FORWARDED.items()))
    assert names(believed) == {"x-forwarded-for"}
    assert exposure.address(believed) == "8.8.8.8"


@pytest.mark.parametrize(
    ("server", "share", "environment", "is_shared"),
    [
        ("localhost", False, {}, False),
        ("::1", False, {}, False),
        ("192.168.3.4", False, {}, True),
        ("127.0.0.1", True, {}, True),
        ("127.0.0.1", False, SPACE, True),
        ("127.0.0.1", False, {"VIT_VIZ_BEHIND_PROXY": "1"}, True),
        ("127.0.0.1", False, {"VIT_VIZ_HOSTS": "vit.example.org"}, True),
    ],
)
def test_the_owner_may_choose_4096_patches_and_visitors_of_a_shared_app_1024(
    server: str, share: bool, environment: dict[str, str], is_shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    exposure = Exposure.of(server, share=share, environment=environment)
    assert (exposure.is_shared, exposure.max_patches) == (is_shared, 1024 if is_shared else 4096)
    monkeypatch.setenv("VIT_VIZ_MAX_PATCHES", "777")
    assert exposure.max_patches == 777
    for text in ("0", "-1", "4e3", "9" * 20):
        monkeypatch.setenv("VIT_VIZ_MAX_PATCHES", text)
        with pytest.raises(
            ParameterError, match=r"VIT_VIZ_MAX_PATCHES is a number of patches such as (4096|1024), not"
        ):
            _ = exposure.max_patches
