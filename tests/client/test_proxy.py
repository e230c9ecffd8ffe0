"""Which proxy is used for what."""

from __future__ import annotations

import pytest

from mull.client.proxy import Proxy, find_proxy, given_proxy, is_loopback
from mull.neutral.errors import ConfigError

P = "http://proxy.example:3128"


def found(environ, scheme="https", host="api.example.com", port=443):
    proxy = find_proxy(scheme, host, port, environ)
    return (proxy.named_by, proxy.host, proxy.port) if proxy else None


@pytest.mark.parametrize(
    ("environ", "scheme", "variable"),
    [
        ({"HTTPS_PROXY": P}, "https", "HTTPS_PROXY"),
        ({"HTTPS_PROXY": P}, "http", None),
        ({"HTTP_PROXY": P}, "http", "HTTP_PROXY"),
        ({"HTTP_PROXY": P}, "https", None),
        ({"ALL_PROXY": P}, "https", "ALL_PROXY"),
        ({"ALL_PROXY": "socks5://h:1", "HTTPS_PROXY": P}, "https", "HTTPS_PROXY"),
        ({"https_proxy": P, "HTTPS_PROXY": "http://other:1"}, "https", "https_proxy"),
        ({"HTTPS_PROXY": ""}, "https", None),
        ({"HTTP_PROXY": P, "REQUEST_METHOD": "GET"}, "http", None),
        ({"http_proxy": P, "REQUEST_METHOD": "GET"}, "http", "http_proxy"),
        ({}, "https", None),
    ],
)
def test_variables(environ, scheme, variable):
    expected = (variable, "proxy.example", 3128) if variable else None
    assert found(environ, scheme) == expected


@pytest.mark.parametrize(
    ("exceptions", "host", "port", "direct"),
    [
        ("*", "api.example.com", 443, True),
        ("example.com", "api.example.com", 443, True),
        (".example.com", "api.example.com", 443, True),
        ("*.example.com", "api.example.com", 443, True),
        ("ample.com", "api.example.com", 443, False),
        ("api.example.com:443", "api.example.com", 443, True),
        ("api.example.com:444", "api.example.com", 443, False),
        ("other, API.Example.com", "api.example.com", 443, True),
        ("10.0.0.0/8", "10.1.2.3", 443, True),
        ("10.0.0.0/8", "11.1.2.3", 443, False),
        ("10.1.2.3", "10.1.2.3", 443, True),
        ("2001:db8::1", "2001:db8::1", 443, True),
        ("[2001:db8::1]:443", "2001:db8::1", 443, True),
        ("[2001:db8::1]:80", "2001:db8::1", 443, False),
        ("2001:db8::/32", "2001:db8::77", 443, True),
        ("", "api.example.com", 443, False),
        (",,", "api.example.com", 443, False),
    ],
)
def test_exceptions(exceptions, host, port, direct):
    environ = {"HTTPS_PROXY": P, "NO_PROXY": exceptions}
    assert (found(environ, host=host, port=port) is None) is direct


@pytest.mark.parametrize("host", ["localhost", "a.localhost", "127.0.0.1", "127.9.9.9", "::1"])
def test_this_machine_needs_no_proxy(host):
    assert is_loopback(host)
    assert found({"ALL_PROXY": P}, host=host) is None
    assert not is_loopback("10.0.0.1")
    assert not is_loopback("localhost.example.com")


def test_credentials_open_it_and_are_not_shown():
    proxy = find_proxy("https", "h", 443, {"HTTPS_PROXY": "http://us%40er:pa%20ss@proxy:8080"})
    assert proxy == Proxy("http", "proxy", 8080, "HTTPS_PROXY", "Basic dXNAZXI6cGEgc3M=")
    assert repr(proxy) == "Proxy(http://proxy:8080, HTTPS_PROXY)"
    assert found({"HTTPS_PROXY": "proxy:8080"}) == ("HTTPS_PROXY", "proxy", 8080)


@pytest.mark.parametrize(
    "value",
    ["socks5://u:canary@h:1", "ftp://canary@h", "http://", "http://h:x", "http://[canary"],
)
def test_what_cannot_be_used_is_said_without_its_value(value):
    with pytest.raises(ConfigError, match=r"^HTTPS_PROXY ") as caught:
        found({"HTTPS_PROXY": value})
    assert "canary" not in str(caught.value)
    with pytest.raises(ConfigError, match=r"^proxy ") as caught:
        given_proxy(value)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("http://h", Proxy("http", "h", 80, "proxy")),
        (" h:8080 ", Proxy("http", "h", 8080, "proxy")),
        ("https://h", Proxy("https", "h", 443, "proxy")),
        ("https://u:p@[::1]:1", Proxy("https", "::1", 1, "proxy", "Basic dTpw")),
    ],
)
def test_proxies_that_are_given(given, expected):
    assert given_proxy(given) == expected


def test_a_socks_proxy_is_told_who_supports_it():
    with pytest.raises(
        ConfigError,
        match=r"SOCKS proxy.*\nIn Python, give one that does: http_client=httpx\.AsyncClient",
    ):
        given_proxy("socks5h://127.0.0.1:1080")
