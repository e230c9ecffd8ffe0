"""The clouds, whose requests are let in by a login on this machine where no key is given.

Nothing else lists them. A compat row's `auth` names the cloud of an endpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from mull.auth.aws import ReadText
    from mull.auth.google import Grant
    from mull.auth.sigv4 import AwsKeys

__all__ = ["CLOUDS", "Cloud", "CloudLogin"]

CloudLogin: TypeAlias = "AwsKeys | Grant"
"""What is found on this machine: keys that sign, or what a token is traded for."""


class Cloud(Struct, frozen=True):
    """How a cloud is reached from this machine.

    `variable` is one that a provider of this cloud lists among its own. `login` finds what lets a
    request in. `address` gives what the variables in an address stand
    for, where the environment leaves them to other places; what is nowhere is left out. `missing`
    says what to do where there is no login.
    """

    variable: str
    login: Callable[[Mapping[str, str], ReadText], CloudLogin | None]
    address: Callable[[Mapping[str, str], ReadText], Mapping[str, str]]
    missing: str


def _aws() -> Cloud:
    from mull.auth import aws

    def address(environ: Mapping[str, str], read: ReadText) -> Mapping[str, str]:
        region = aws.find_region(environ, read)
        return {"AWS_REGION": region} if region else {}

    return Cloud(
        "AWS_ACCESS_KEY_ID",
        aws.find_keys,
        address,
        "set AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a"
        " profile of `aws configure` with AWS_PROFILE",
    )


def _google() -> Cloud:
    from mull.auth import google

    def address(environ: Mapping[str, str], read: ReadText) -> Mapping[str, str]:
        location = google.find_location(environ)
        project = google.find_project(environ, None)
        if project is None:
            project = google.find_project(environ, google.find_grant(environ, read))
        return {
            "GOOGLE_VERTEX_LOCATION": location,
            "GOOGLE_VERTEX_ENDPOINT": google.host_at(location),
            **({"GOOGLE_VERTEX_PROJECT": project} if project else {}),
        }

    return Cloud(
        "GOOGLE_APPLICATION_CREDENTIALS",
        google.find_grant,
        address,
        f"run {google.LOG_IN}, or set GOOGLE_APPLICATION_CREDENTIALS to the file of a service"
        " account, or GOOGLE_OAUTH_ACCESS_TOKEN to a token",
    )


CLOUDS: Mapping[str, Callable[[], Cloud]] = {"aws": _aws, "google": _google}
