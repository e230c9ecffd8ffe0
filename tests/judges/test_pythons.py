"""Every Python that the classifiers promise, as far as it can be had here."""

from __future__ import annotations

import sys

import pytest
from tools.pythons import run_core, versions

from mull.testing.pythons import find_python

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
THIS = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.mark.parametrize("version", [one for one in versions() if one != THIS])
def test_the_core_and_the_library_run_under(version):
    interpreter = find_python(version)
    if interpreter is None:
        pytest.skip(f"no Python {version} on the PATH, in pyenv or in uv")
    done = run_core(version, interpreter)
    assert done.good, done.output[-6000:]


def test_the_versions_are_named_from_the_oldest_that_is_required():
    assert versions()[0] == "3.11"
    assert find_python(THIS) == sys.executable
    assert find_python("3.99") is None
