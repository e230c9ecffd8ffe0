"""No test hangs, and no run: what does not end is ended, and says where it was.

The first limit is pytest-timeout's: `timeout` in pyproject.toml, or the test's own mark. It raises
in the main thread, and an event loop that waits for its threads on the way out, or whatever catches
everything, can keep that exception for ever. Then the second limit prints where every thread is,
and ends the process. The test has failed by that; xdist goes on with the others in a new process.
"""

from __future__ import annotations

import faulthandler
import os

import pytest
import pytest_timeout

__all__ = ["SecondLimit"]


class SecondLimit:
    """A plugin of pytest: this many seconds after the first limit, the process ends."""

    def __init__(self, config, seconds=30.0):
        self._seconds = seconds
        with config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            self._stderr = os.dup(2)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item):
        first = pytest_timeout._get_item_settings(item).timeout
        if first and first > 0 and not item.config.option.usepdb:
            faulthandler.dump_traceback_later(first + self._seconds, exit=True, file=self._stderr)
        try:
            return (yield)
        finally:
            faulthandler.cancel_dump_traceback_later()

    def pytest_enter_pdb(self):
        faulthandler.cancel_dump_traceback_later()

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config, log):
        return _files_once(config, log) if config.getvalue("dist") == "loadfile" else None


def _files_once(config, log):
    from xdist.scheduler import LoadFileScheduling

    class FilesOnce(LoadFileScheduling):
        """Whole files to each worker; of one that crashed, what it had not begun goes to others.

        xdist itself gives them the test that crashed again, which crashes them too, and the files
        that were finished, of which nothing is left to run: a worker that gets one waits for ever.
        So does one that gets a single test, and hears neither of another nor of the end. And it
        fails where it gives work to one that still collects.
        """

        def _reschedule(self, node):
            if node in self.registered_collections:
                super()._reschedule(node)

        def schedule(self):
            is_late = self.collection is not None
            super().schedule()
            if is_late:
                super().schedule()

        def remove_node(self, node):
            work = self.assigned_work[node]
            left = [test for unit in work.values() for test, done in unit.items() if not done]
            for scope, unit in [*work.items()]:
                work[scope] = {test: False for test in unit if test in left[1:]}
                if not work[scope]:
                    del work[scope]
            super().remove_node(node)
            return left[0] if left else None

    return FilesOnce(config, log)
