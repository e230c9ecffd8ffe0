"""Finds a running gateway by sending a request to the configured address."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

from mull.cli.serve_reach import client_url
from mull.gateway.setups import TOKEN_VARIABLE, Reach
from mull.neutral.errors import ConfigError
from mull.store.serve import ServeConfig, socket_path

__all__ = ["find_gateway", "needs_token"]

_SECONDS = 5.0
_UNAUTHORIZED = 401


def find_gateway(config: ServeConfig, only: str | None, token: str | None) -> Reach | None:
    """How to reach a running gateway that serves the model, or None if there is none.

    Raises:
        ConfigError: the gateway needs a token, and none or a wrong one is given.
    """
    if socket_path(config.listen) is not None:
        return None
    from mull.gateway.app import OURS

    url, (name, value) = client_url(config, is_here=True), OURS
    try:
        with _open(f"{url}/health") as answer:
            if answer.headers.get(name) != value:
                return None
        with _open(f"{url}/v1/models", token) as answer:
            listed = json.load(answer).get("data", [])
    except urllib.error.HTTPError as error:
        error.close()
        if error.code != _UNAUTHORIZED:
            return None
        raise needs_token(f"the gateway at {url}") from None
    except (OSError, ValueError, AttributeError):
        return None
    models = {one.get("id"): one for one in listed if isinstance(one, dict)}
    wanted = [only] if only is not None else [config.default, *config.models, *models]
    model = next((name for name in wanted if name in models), None)
    if model is None:
        return None
    about = models[model]
    return Reach(url, model, about.get("max_input_tokens"), about.get("max_tokens"), token)


def needs_token(gateway: str) -> ConfigError:
    """The error for a missing token."""
    return ConfigError(
        f"{gateway} needs a token: set {TOKEN_VARIABLE} to yours; `mull serve token add NAME`"
        " creates one"
    )


def _open(url: str, token: str | None = None) -> Any:
    """The response from an address on this machine, without any proxy."""
    headers = {"anthropic-version": "2023-06-01"}  # the list of models in this API has their limits
    if token is not None:
        headers["authorization"] = f"Bearer {token}"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    return opener.open(urllib.request.Request(url, headers=headers), timeout=_SECONDS)
