"""What commands say of models in clouds: the address, the credentials, and what is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mull.cli.main import main

CLAUDE = "amazon-bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0"
GEMINI = "google-vertex/gemini-2.5-pro"
CANARY = "canary-cloud-cli"


@pytest.fixture
def said(capsys, monkeypatch):
    def said(*words, status=0, **environ):
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        assert main([*words]) == status
        told = capsys.readouterr()
        assert CANARY not in told.out + told.err
        return told.out + told.err

    return said


@pytest.fixture
def profile():
    """The files of `aws configure`, as far as they are needed."""
    folder = Path("~/.aws").expanduser()
    folder.mkdir(parents=True)
    key = f"aws_access_key_id = AKID\naws_secret_access_key = {CANARY}\n"
    (folder / "credentials").write_text(f"[default]\n{key}")
    (folder / "config").write_text(
        "[default]\nregion = eu-west-3\n[profile corp]\nsso_session = x\n"
    )


def test_nothing_is_set_up(said):
    shown = said("models", "show", CLAUDE)
    assert "  key        AWS_BEARER_TOKEN_BEDROCK (not set) or a login on this machine\n" in shown
    assert "  missing    the address of Amazon Bedrock," in shown
    assert "needs AWS_REGION in the environment" in shown
    shown = said("models", "show", CLAUDE, AWS_REGION="us-east-1")
    assert "  address    https://bedrock-runtime.us-east-1.amazonaws.com\n" in shown
    assert "  missing    no credentials for Amazon Bedrock: set AWS_BEARER" in shown


def test_a_profile_is_found(said, profile):
    shown = said("models", "show", CLAUDE)
    assert "  address    https://bedrock-runtime.eu-west-3.amazonaws.com\n" in shown
    assert "  login      profile default in ~/.aws/credentials\n" in shown
    assert "  missing" not in shown
    doctor = said("doctor", CLAUDE)
    assert "login found (profile default in ~/.aws/credentials)" in doctor
    assert "keys         amazon-bedrock" in doctor
    listed = said("keys", "list")
    assert listed == "amazon-bedrock  login        profile default in ~/.aws/credentials\n"
    assert json.loads(said("keys", "list", "--json")) == [
        {
            "provider": "amazon-bedrock",
            "found": "login",
            "variable": None,
            "used": True,
            "login": "profile default in ~/.aws/credentials",
        }
    ]


def test_a_profile_that_another_program_has_to_open(said, profile):
    said_of_it = "profile corp in ~/.aws/config gets its keys through sso_session"
    assert said_of_it in said("doctor", CLAUDE, status=1, AWS_PROFILE="corp", AWS_REGION="x-1")
    assert said("keys", "list") == "No key found. `mull keys set PROVIDER` stores one.\n"


def test_vertex(said):
    assert "needs GOOGLE_VERTEX_PROJECT in the environment" in said("doctor", GEMINI, status=1)
    shown = said("models", "show", GEMINI, GOOGLE_CLOUD_PROJECT="p")
    assert (
        "  address    https://aiplatform.googleapis.com/v1/projects/p/locations/global\n" in shown
    )
    assert "  missing    no credentials for Vertex: run `gcloud auth" in shown
    place = Path("~/.config/gcloud").expanduser()
    place.mkdir(parents=True)
    held = {"type": "authorized_user", "client_id": "c", "client_secret": CANARY}
    held["refresh_token"] = CANARY
    (place / "application_default_credentials.json").write_text(json.dumps(held))
    login = "~/.config/gcloud/application_default_credentials.json"
    assert f"  login      {login}\n" in said("models", "show", GEMINI)
    assert "google-vertex-anthropic" in said("keys", "list")


def test_a_key_goes_before_a_login(said, profile):
    listed = said("keys", "list", AWS_BEARER_TOKEN_BEDROCK=CANARY).splitlines()
    assert listed == [
        "amazon-bedrock  environment  AWS_BEARER_TOKEN_BEDROCK",
        "amazon-bedrock  login        profile default in ~/.aws/credentials  (not used)",
    ]
