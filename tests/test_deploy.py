"""The files in deploy/ say what mull understands. Nothing is started here."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest
import yaml

from mull.cli.main import parse
from mull.store.serve import read_serve

DEPLOY = Path(__file__).parent.parent / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose/compose.yaml").read_text())
CONTAINER = (DEPLOY / "Containerfile").read_text()
GATEWAYS = ("gateway-1", "gateway-2")
DEFAULTS = dict(
    re.findall(r"\$\{(\w+_IMAGE):-([^}]+)\}", (DEPLOY / "compose/compose.yaml").read_text())
)
"""The images, each by the variable that replaces it."""


def config_in(file: str):
    return read_serve(tomllib.loads((DEPLOY / file).read_text())["serve"], file)


def unit() -> configparser.SectionProxy:
    read = configparser.ConfigParser(strict=False, interpolation=None)
    read.optionxform = str
    read.read(DEPLOY / "mull-serve.service")
    return read["Service"]


def instruction(name: str) -> str:
    """The last instruction of this name in the Containerfile, its lines joined."""
    joined = CONTAINER.replace("\\\n", " ")
    return re.findall(rf"^\s*{name}\s+(.*)$", joined, re.MULTILINE)[-1]


@pytest.mark.parametrize("file", ["serve.toml", "compose/serve.toml"])
def test_the_configurations_can_be_read(file):
    config = config_in(file)
    assert config.default in config.models


def test_the_unit_starts_what_there_is():
    program, *words = shlex.split(unit()["ExecStart"])
    assert program.endswith("/mull")
    assert parse(words).config == Path("/etc/mull/serve.toml")
    assert f"MULL_DATA_DIR=%S/{unit()['StateDirectory']}" in unit()["Environment"]


def test_the_unit_gives_up_what_it_does_not_need():
    given = unit()
    for name in ("DynamicUser", "NoNewPrivileges", "ProtectHome", "PrivateTmp", "PrivateDevices"):
        assert given[name] == "yes"
    assert given["ProtectSystem"] == "strict"
    assert given["CapabilityBoundingSet"] == ""


def test_the_container_starts_what_there_is_and_is_not_root():
    program, *words = json.loads(instruction("ENTRYPOINT"))
    assert program == "mull"
    assert parse(words).config == Path("/etc/mull/serve.toml")
    assert int(instruction("USER")) > 0
    check = instruction("HEALTHCHECK").partition("CMD")[2]
    assert compile(json.loads(check)[2], "healthcheck", "exec")
    assert "/health" in check
    extras = re.search(r"\.\[([\w,]+)\]", CONTAINER)[1].split(",")
    project = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())["project"]
    assert {*extras} <= {*project["optional-dependencies"]}


def test_the_container_is_built_from_all_that_the_wheel_is_made_of():
    whole = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())
    wheel = whole["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {*wheel["packages"], *wheel["force-include"], *whole["project"]["license-files"]}
    needed |= {whole["project"]["readme"], "pyproject.toml"}
    words = (line.split()[1:-1] for line in re.findall(r"^COPY (?!--).*", CONTAINER, re.MULTILINE))
    copied = {Path(word) for line in words for word in line}
    assert not {one for one in needed if copied.isdisjoint({Path(one), *Path(one).parents})}


@pytest.mark.parametrize("name", GATEWAYS)
def test_each_gateway_of_compose_has_what_its_configuration_names(name):
    service = COMPOSE["services"][name]
    config = config_in("compose/serve.toml")
    assert service["environment"].keys() == {config.store[1:], config.cache[1:]}
    assert service["environment"][config.store[1:]].startswith("postgresql://")
    assert service["environment"][config.cache[1:]].startswith("valkey://")
    build = {**service["build"]}
    (named,) = build.pop("args")
    assert build == {"context": "../..", "dockerfile": "deploy/Containerfile"}
    assert f"ARG {named}={DEFAULTS[named]}\n" in CONTAINER
    mounted = {volume.split(":")[1] for volume in service["volumes"]}
    assert mounted == {"/etc/mull/serve.toml", "/var/lib/mull"}
    assert {*service["depends_on"]} < {*COMPOSE["services"]}


def test_the_proxy_knows_both_gateways_and_holds_nothing_back():
    text = (DEPLOY / "compose/Caddyfile").read_text()
    config = config_in("compose/serve.toml")
    port = config.listen.rpartition(":")[2]
    assert f"reverse_proxy {' '.join(f'{name}:{port}' for name in GATEWAYS)} {{" in text
    assert text.startswith(f"{config.hosts[0]} {{")
    assert "flush_interval -1" in text
    assert text.count("{") == text.count("}")


def test_every_volume_that_is_used_is_declared():
    used = {
        volume.split(":")[0]
        for service in COMPOSE["services"].values()
        for volume in service.get("volumes", ())
        if not volume.startswith(".")
    }
    assert used == {*COMPOSE["volumes"]}


def in_comments(file: str, program: str) -> list[str]:
    """The words of the command that comments of this file tell to run."""
    text = re.sub(r"^# ?", "", (DEPLOY / file).read_text(), flags=re.MULTILINE)
    found = re.search(rf"^ *{program} (?:.*\\\n)*.*$", text, re.MULTILINE)
    return shlex.split(found[0])


def test_a_token_is_added_as_the_user_of_the_unit():
    """Whatever else that command does, it runs where, as whom and with what the service does."""
    words = in_comments("mull-serve.service", "systemd-run")
    given = dict(re.findall(r"--property=(\w+)=(\S+)", " ".join(words)))
    assert given["User"] == "mull-serve"
    assert given == {name: unit()[name] for name in given}
    assert {"DynamicUser", "User", "StateDirectory", "UMask", "EnvironmentFile"} <= {*given}
    variables = {word.removeprefix("--setenv=") for word in words if "--setenv" in word}
    state = unit()["Environment"].replace("%S", "/var/lib").split()
    assert variables <= {*state}
    program, *rest = words[words.index(shlex.split(unit()["ExecStart"])[0]) :]
    assert f"{program} {' '.join(rest)}".startswith(unit()["ExecStart"])
    assert parse(rest).name == "ann"


def test_images_are_by_digest_and_renewed_by_the_same_tag():
    images = {service["image"] for name, service in COMPOSE["services"].items()} - {"mull-serve"}
    assert images == {f"${{{name}:-{image}}}" for name, image in DEFAULTS.items()} - {
        f"${{PYTHON_IMAGE:-{DEFAULTS['PYTHON_IMAGE']}}}"
    }
    text = (DEPLOY / "compose/compose.yaml").read_text()
    told = dict(
        re.findall(
            r"(\w+)=([\w/.-]+:[\w.-]+)", text.partition("for one in")[2].partition("do\n")[0]
        )
    )
    tags = {}
    for name, image in DEFAULTS.items():
        tag, digest = image.split("@")
        assert re.fullmatch("sha256:[0-9a-f]{64}", digest)
        tags[name.removesuffix("_IMAGE")] = tag.removeprefix("docker.io/").removeprefix("library/")
    assert told == tags
