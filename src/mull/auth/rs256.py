"""Signatures by an RSA key, which the standard library does not make: `cryptography` does."""

from __future__ import annotations

from mull.auth.secret import Secret
from mull.neutral.errors import ConfigError
from mull.neutral.extras import missing

__all__ = ["sign_rs256"]


def sign_rs256(key: Secret, data: bytes, place: str) -> bytes:
    """The signature of the data (RFC 7518, section 3.3) by a private key in PEM.

    Raises:
        ConfigError: `cryptography` is not installed, or the key, which lies in `place`, is none.
    """
    try:
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import padding, rsa
    except ImportError as error:
        raise ConfigError(f"{place}: {missing('vertex', error)}") from None
    try:
        private = serialization.load_pem_private_key(key.reveal().encode(), password=None)
    except (ValueError, TypeError):
        private = None
    if not isinstance(private, rsa.RSAPrivateKey):
        raise ConfigError(f"private_key in {place} is not an RSA key: download the file again")
    return private.sign(data, padding.PKCS1v15(), hashes.SHA256())
