"""Which servers are trusted, and the certificate that this side shows.

The system's certificate authorities, unless `verify` or a variable names others: SSL_CERT_FILE and
SSL_CERT_DIR, which OpenSSL reads, then REQUESTS_CA_BUNDLE, which Python programs share.
"""

from __future__ import annotations

import functools
import os
import ssl
from typing import TypeAlias

from mull.neutral.errors import ConfigError

__all__ = ["Cert", "Trust", "Verify", "say_ssl_error"]

Path: TypeAlias = str | os.PathLike[str]
Verify: TypeAlias = bool | Path | ssl.SSLContext
"""Whether, or by whose certificates, servers are trusted."""
Cert: TypeAlias = Path | tuple[Path, Path] | tuple[Path, Path, str]
"""A client certificate: one file with its key; certificate and key; or these and a password."""


class Trust:
    """What TLS connections are made with; the environment is read when one is made.

    Raises:
        ConfigError: a file is missing, or what was given cannot be combined.
    """

    def __init__(self, verify: Verify = True, cert: Cert | None = None) -> None:
        self._verify = _checked(verify)
        self._cert = None if cert is None else _cert_files(cert)
        if isinstance(verify, ssl.SSLContext) and cert is not None:
            raise ConfigError(
                "cert cannot be combined with an ssl.SSLContext as verify: call the context's own"
                " load_cert_chain"
            )
        self._with_cert: ssl.SSLContext | None = None

    def for_endpoint(self) -> ssl.SSLContext:
        """For the endpoint itself.

        Raises:
            ConfigError: the certificates cannot be read.
        """
        if self._cert is None or isinstance(self._verify, ssl.SSLContext):
            return self.for_proxy()
        if self._with_cert is None:
            self._with_cert = _with_cert(_make(self._verify, _environment()), self._cert)
        return self._with_cert

    def for_proxy(self) -> ssl.SSLContext:
        """For a proxy on the way, which is not shown the client certificate.

        Raises:
            ConfigError: the certificates cannot be read.
        """
        if isinstance(self._verify, ssl.SSLContext):
            return self._verify
        return _made(self._verify, _environment())


def _checked(verify: Verify) -> bool | str | ssl.SSLContext:
    if isinstance(verify, bool | ssl.SSLContext):
        return verify
    if not isinstance(verify, str | os.PathLike):
        raise ConfigError(
            "verify must be True, False, a file or folder of certificates, or an ssl.SSLContext,"
            f" not {type(verify).__name__}"
        )
    return _existing(os.fspath(verify), "verify")


def _existing(path: str, what: str) -> str:
    if not os.path.exists(path):
        raise ConfigError(f"{what} names {path!r}, which does not exist")
    return path


_Environment: TypeAlias = tuple[str | None, ...]
_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")


def _environment() -> _Environment:
    return tuple(map(os.environ.get, _VARIABLES))


def _make(verify: bool | str, environment: _Environment) -> ssl.SSLContext:
    """A new context."""
    if isinstance(verify, str):
        return _from_path(verify, "verify")
    if verify:
        return _from_environment(environment)
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return _speaking_http1(context)


_made = functools.lru_cache(maxsize=8)(_make)
"""A context that was made before, as long as the variables are the same."""


def _from_environment(paths: _Environment) -> ssl.SSLContext:
    for name, path in zip(_VARIABLES, paths, strict=True):
        if path and not any(os.path.exists(part) for part in path.split(os.pathsep)):
            raise ConfigError(f"{name} names {path!r}, which does not exist")
    file, folder, bundle = paths
    if bundle and not file and not folder:
        return _from_path(bundle, "REQUESTS_CA_BUNDLE")
    try:
        return _speaking_http1(ssl.create_default_context())
    except OSError as error:
        told = say_ssl_error(error)
        raise ConfigError(f"the trusted certificates cannot be read: {told}") from None


def _from_path(path: str, what: str) -> ssl.SSLContext:
    try:
        if os.path.isdir(path):
            return _speaking_http1(ssl.create_default_context(capath=path))
        return _speaking_http1(ssl.create_default_context(cafile=path))
    except OSError as error:
        told = say_ssl_error(error)
        raise ConfigError(f"{what}: no certificates can be read from {path!r}: {told}") from None


def _speaking_http1(context: ssl.SSLContext) -> ssl.SSLContext:
    context.set_alpn_protocols(["http/1.1"])
    return context


_CertFiles: TypeAlias = tuple[str, str | None, str | None]


def _cert_files(cert: Cert) -> _CertFiles:
    parts: tuple[object, ...] = cert if isinstance(cert, tuple) else (cert,)
    texts = [os.fspath(one) for one in parts if isinstance(one, str | os.PathLike)]
    if len(texts) != len(parts) or not 1 <= len(texts) <= 3:
        raise ConfigError(
            "cert must be a file, a pair of certificate and key files, or these two and the key's"
            " password"
        )
    for path in texts[:2]:
        _existing(path, "cert")
    file, key, password = (*texts, None, None)[:3]
    assert file is not None
    return file, key, password


def _with_cert(context: ssl.SSLContext, cert: _CertFiles) -> ssl.SSLContext:
    file, key, password = cert
    try:
        # without a password, OpenSSL would ask for one at the terminal
        context.load_cert_chain(file, key, password or "")
    except OSError as error:
        told = say_ssl_error(error)
        raise ConfigError(f"the client certificate {file!r} cannot be used: {told}") from None
    return context


def say_ssl_error(error: OSError) -> str:
    """What is wrong with TLS or a certificate, in a few words."""
    if isinstance(error, ssl.SSLError):
        reason = getattr(error, "reason", None)  # libraries derive their own, without it
        return (reason or "it broke off").lower().replace("_", " ")
    return error.strerror or type(error).__name__
