"""systemd itself reads the unit of the gateway, where there is one."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from test_deploy import in_comments

UNIT = Path(__file__).parents[2] / "deploy" / "mull-serve.service"
ANALYZE = shutil.which("systemd-analyze")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not installed"),
]


@pytest.fixture
def unit(tmp_path):
    """The unit with a program that this machine has."""
    file = tmp_path / UNIT.name
    file.write_text(UNIT.read_text().replace("/opt/mull/bin/mull", shutil.which("true")))
    return str(file)


def test_the_command_that_adds_a_token_has_no_mistakes(tmp_path):
    """Its properties, as a unit: what `systemd-run` makes of them."""
    words = in_comments(UNIT.name, "systemd-run")
    lines = [word.removeprefix("--property=") for word in words if word.startswith("--property=")]
    file = tmp_path / "mull-token.service"
    program = shutil.which("true")
    file.write_text("\n".join(["[Service]", f"ExecStart={program}", "Type=oneshot", *lines]) + "\n")
    done = subprocess.run(
        [ANALYZE, "verify", "--man=no", file], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    told = subprocess.run(
        ["systemd-run", "--help"], capture_output=True, text=True, check=True
    ).stdout
    options = {word.partition("=")[0] for word in words if word.startswith("--")} - {"--config"}
    assert all(option in told for option in options)


def test_the_unit_has_no_mistakes(unit):
    done = subprocess.run(
        [ANALYZE, "verify", "--man=no", unit], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_little_of_the_system_is_exposed_to_the_service(unit):
    done = subprocess.run(
        [ANALYZE, "security", "--offline=yes", unit], capture_output=True, text=True, check=False
    )
    exposure = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
    assert exposure is not None, done.stderr
    assert float(exposure[1]) <= 2
