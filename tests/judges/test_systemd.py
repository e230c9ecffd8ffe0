"""systemd itself reads the unit of the gateway, where there is one."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

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
