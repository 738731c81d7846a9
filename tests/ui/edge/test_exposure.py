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
    *("localhost", "localhost:7860", "LOCALHOST:7860", "localhost.", "LocalHost.:80", " localhost "),
    *("127.0.0.1", "127.0.0.1:7860", "127.8.9.10:7860", "[::1]", "[::1]:7860", "vit.localhost:7860"),
]
FOREIGN_NAMES = [
    *("evil.example", "evil.example:7860", "localhost.evil.example", "127.0.0.1.evil.example"),
    *("notlocalhost", "evil.example:localhost", "evil.example:127.0.0.1", "xn--lcalhost-x2b"),
]
NETWORK_ADDRESSES = ["192.168.3.4:7860", "10.0.0.5", "8.8.8.8", "[2001:db8::5]:7860", "0.0.0.0:7860"]
ODD_HOSTS = ["", ":", ":7860", ".", "[", "[]", "::1:", "2130706433", "127.1", "\0"]


@pytest.mark.parametrize("server", ["localhost", "127.0.0.1", "::1", "LOCALHOST", "127.0.0.2"])
def test_listening_on_localhost_only_its_names_are_served(server: str) -> None:
    exposure = Exposure.of(server, environment={})
    assert [host for host in LOCAL_HOSTS if not exposure.serves(host)] == []
    assert [host for host in FOREIGN_NAMES + NETWORK_ADDRESSES + ODD_HOSTS if exposure.serves(host)] == []


def test_unless_told_otherwise_only_the_names_of_localhost_are_served_and_no_proxy_is_believed() -> None:
    exposure = Exposure()
    assert [host for host in LOCAL_HOSTS if not exposure.serves(host)] == []
    assert [host for host in FOREIGN_NAMES + NETWORK_ADDRESSES + ODD_HOSTS if exposure.serves(host)] == []
    assert not names(exposure.believed(scope(*FORWARDED.items())))


@pytest.mark.parametrize("server", ["0.0.0.0", "::", "192.168.3.4", "vit.example.org"])
def test_listening_elsewhere_any_name_is_served(server: str) -> None:
    exposure = Exposure.of(server, environment={})
    everything = LOCAL_HOSTS + FOREIGN_NAMES + NETWORK_ADDRESSES + ODD_HOSTS
    assert [host for host in everything if not exposure.serves(host)] == []


def test_listening_elsewhere_with_names_they_and_network_addresses_are_served() -> None:
    exposure = Exposure.of(
        "0.0.0.0", environment={"VIT_VIZ_HOSTS": " vit.example.org, Other.Example.:443,,[2001:db8::7]:80 "}
    )
    named = ["vit.example.org", "VIT.example.ORG:7860", "vit.example.org.", "other.example", "[2001:db8::7]"]
    assert [host for host in named + LOCAL_HOSTS + NETWORK_ADDRESSES if not exposure.serves(host)] == []
    assert [
        host for host in [*FOREIGN_NAMES, *ODD_HOSTS, "sub.vit.example.org"] if exposure.serves(host)
    ] == []


def test_listening_on_localhost_with_names_they_are_served_and_network_addresses_are_not() -> None:
    exposure = Exposure.of("127.0.0.1", environment={"VIT_VIZ_HOSTS": "vit.example.org"})
    assert [host for host in ["vit.example.org:80", *LOCAL_HOSTS] if not exposure.serves(host)] == []
    assert [host for host in FOREIGN_NAMES + NETWORK_ADDRESSES + ODD_HOSTS if exposure.serves(host)] == []


@pytest.mark.parametrize("hosts", ["*", "vit.example.org, *"])
@pytest.mark.parametrize("server", ["127.0.0.1", "0.0.0.0"])
def test_a_star_serves_any_name(server: str, hosts: str) -> None:
    exposure = Exposure.of(server, environment={"VIT_VIZ_HOSTS": hosts})
    assert all(exposure.serves(host) for host in FOREIGN_NAMES + LOCAL_HOSTS)


@pytest.mark.parametrize("server", ["0.0.0.0", "127.0.0.1"])
def test_a_space_serves_its_own_name_and_the_addresses_by_which_it_is_probed(server: str) -> None:
    exposure = Exposure.of(server, environment=SPACE)
    for host in ("ada-vit.hf.space", "ADA-vit.hf.space:443", "localhost:7860", "10.1.2.3:7860"):
        assert exposure.serves(host)
    assert not any(exposure.serves(host) for host in [*FOREIGN_NAMES, "eve-vit.hf.space", "hf.space", ""])


def test_a_space_with_names_serves_those() -> None:
    exposure = Exposure.of("0.0.0.0", environment=SPACE | {"VIT_VIZ_HOSTS": "vit.example.org"})
    assert exposure.serves("vit.example.org")
    assert not exposure.serves("ada-vit.hf.space")


def test_a_shared_app_serves_the_name_that_its_tunnel_gets() -> None:
    assert Exposure.of("127.0.0.1", share=True, environment={}).serves("0123abcd.gradio.live")
    assert not Exposure.of("127.0.0.1", environment={}).serves("0123abcd.gradio.live")


def test_frames_are_those_of_notebooks_or_of_the_space() -> None:
    local, space = Exposure.of("localhost", environment={}), Exposure.of("0.0.0.0", environment=SPACE)
    assert local.frames == ("http://localhost:*", "http://127.0.0.1:*")
    assert space.frames == ("https://huggingface.co", "https://*.hf.space")
    assert Exposure.of("0.0.0.0", environment={}).frames == ()
    assert Exposure.of("localhost", share=True, environment={}).frames == ()


@pytest.mark.parametrize("environment", [{}, {"VIT_VIZ_BEHIND_PROXY": "0"}, {"VIT_VIZ_BEHIND_PROXY": ""}])
def test_headers_of_a_proxy_are_dropped_unless_there_is_one(environment: dict[str, str]) -> None:
    request = scope(("host", "localhost"), *FORWARDED.items(), ("cookie", "x"), ("x-forward", "kept"))
    believed = Exposure.of("0.0.0.0", environment=environment).believed(request)
    assert names(believed) == {"host", "cookie", "x-forward"}
    assert names(request) == {"host", "cookie", "x-forward", *FORWARDED}  # the request itself is as it was


@pytest.mark.parametrize("environment", [{"VIT_VIZ_BEHIND_PROXY": "1"}, SPACE])
def test_headers_of_a_proxy_are_believed_where_there_is_one(environment: dict[str, str]) -> None:
    request = scope(("host", "localhost"), *FORWARDED.items())
    assert names(Exposure.of("0.0.0.0", environment=environment).believed(request)) == {"host", *FORWARDED}


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


def test_without_the_header_that_is_named_there_is_no_address() -> None:
    exposure = Exposure.of("0.0.0.0", environment={"VIT_VIZ_ADDRESS_HEADER": "x-client-address"})
    assert exposure.address(scope(client="8.8.8.8")) == ""


def test_of_several_headers_of_the_name_the_last_counts() -> None:
    exposure = Exposure.of("0.0.0.0", environment={"VIT_VIZ_ADDRESS_HEADER": "x-client-address"})
    request = scope(("x-client-address", "1.1.1.1"), ("x-client-address", "9.9.9.9, 8.8.4.4"))
    assert exposure.address(request) == "8.8.4.4"


def test_the_header_that_is_named_is_believed_and_no_other() -> None:
    exposure = Exposure.of("0.0.0.0", environment={"VIT_VIZ_ADDRESS_HEADER": "X-Forwarded-For"})
    believed = exposure.believed(scope(*FORWARDED.items()))
    assert names(believed) == {"x-forwarded-for"}
    assert exposure.address(believed) == "8.8.8.8"


@pytest.mark.parametrize("server", ["localhost", "127.0.0.1", "::1"])
def test_the_owner_on_localhost_may_choose_4096_patches(server: str) -> None:
    exposure = Exposure.of(server, environment={})
    assert not exposure.is_shared
    assert exposure.max_patches == 4096


@pytest.mark.parametrize(
    ("server", "share", "environment"),
    [
        ("0.0.0.0", False, {}),
        ("192.168.3.4", False, {}),
        ("127.0.0.1", True, {}),
        ("0.0.0.0", False, SPACE),
        ("127.0.0.1", False, SPACE),
        ("127.0.0.1", False, {"VIT_VIZ_BEHIND_PROXY": "1"}),
        ("127.0.0.1", False, {"VIT_VIZ_HOSTS": "vit.example.org"}),
    ],
)
def test_visitors_of_a_shared_app_may_choose_1024(
    server: str, share: bool, environment: dict[str, str]
) -> None:
    exposure = Exposure.of(server, share=share, environment=environment)
    assert exposure.is_shared
    assert exposure.max_patches == 1024


@pytest.mark.parametrize("server", ["127.0.0.1", "0.0.0.0"])
def test_a_variable_says_how_many_patches_may_be_chosen(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIT_VIZ_MAX_PATCHES", "777")
    assert Exposure.of(server, environment={}).max_patches == 777


@pytest.mark.parametrize("text", ["", "0", "-1", "many", "4e3", "9" * 20])
def test_a_variable_that_is_no_number_of_patches_is_refused(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIT_VIZ_MAX_PATCHES", text)
    with pytest.raises(ParameterError, match="VIT_VIZ_MAX_PATCHES is a number of patches such as 4096, not"):
        _ = Exposure.of("localhost", environment={}).max_patches
