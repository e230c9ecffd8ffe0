"""A real browser for tests: chromium, headless, spoken to over a pipe in the DevTools protocol."""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)
PATIENCE = 30.0


def find_chromium() -> str | None:
    """Where the browser is, if it is installed."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Browser:
    """One process. Messages are JSON, each ended by a NUL byte, on the pipes 3 and 4."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read = write, read
        self._buffer = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, method: str, session: str, **params: Any) -> None:
        """Read on until a page has sent an event with these parameters."""
        while not any(params.items() <= said.items() for said in self.told(method, session)):
            self.events.append(self._next())

    def told(self, method: str, session: str) -> list[dict[str, Any]]:
        """The events of this kind that a page sent so far."""
        return [
            event["params"]
            for event in self.events
            if event.get("method") == method and event.get("sessionId") == session
        ]

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], deadline - time.monotonic())
            assert ready, "the browser does not answer"
            piece = os.read(self._read, 1 << 16)
            assert piece, "the browser went away"
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(line)


class Page:
    """One page, with everything it asks the network for and everything it complains about."""

    def __init__(self, browser: Browser, *, width: int, height: int, dark: bool) -> None:
        self._target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        attached = browser.call("Target.attachToTarget", targetId=self._target, flatten=True)
        self._browser, self._session = browser, attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **params)

    def open(self, path: Path) -> None:
        """Load a file, and wait until it asks for nothing any more."""
        self.visit(path.as_uri(), "networkIdle")

    def visit(self, url: str, until: str = "load") -> None:
        """Load a page and wait for this event of its life."""
        loader = self.call("Page.navigate", url=url)["loaderId"]
        self._browser.wait_for("Page.lifecycleEvent", self._session, name=until, loaderId=loader)

    def wait_until(self, expression: str) -> None:
        """Wait until this is true on the page."""
        deadline = time.monotonic() + PATIENCE
        while not self.evaluate(f"Boolean({expression})"):
            assert time.monotonic() < deadline, f"never true: {expression}"
            time.sleep(0.05)

    def close(self) -> None:
        self._browser.call("Target.closeTarget", targetId=self._target)

    def evaluate(self, expression: str) -> Any:
        result = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def click(self, selector: str) -> None:
        """Click in the middle of an element, as a mouse does."""
        x, y = self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            " e.scrollIntoView({block: 'center', behavior: 'instant'});"
            " const r = e.getBoundingClientRect();"
            " return [r.x + r.width / 2, r.y + r.height / 2] })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def requests(self) -> list[str]:
        """Every address that the page asked for."""
        return [sent["request"]["url"] for sent in self._told("Network.requestWillBeSent")]

    def complaints(self) -> list[dict[str, Any]]:
        """Errors and warnings of the console, uncaught exceptions, refused loads."""
        named = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
        return [said for name in named for said in self._told(name)]

    def screenshot(self) -> bytes:
        return b64decode(self.call("Page.captureScreenshot")["data"])

    def _told(self, method: str) -> list[dict[str, Any]]:
        self.evaluate("0")  # whatever it said before this answer has come
        return self._browser.told(method, self._session)


@contextmanager
def browsing(folder: Path, *more: str) -> Iterator[Browser]:
    """A browser with a profile of its own in the folder."""
    program = find_chromium()
    assert program
    to_read, to_write = os.pipe()
    from_read, from_write = os.pipe()
    theirs = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in (to_read, from_write)]
    os.close(to_read)
    os.close(from_write)

    def place_pipes() -> None:
        os.dup2(theirs[0], 3)
        os.dup2(theirs[1], 4)

    process = subprocess.Popen(
        [program, *FLAGS, f"--user-data-dir={folder}", *more],
        preexec_fn=place_pipes,
        pass_fds=(3, 4),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    for fd in theirs:
        os.close(fd)
    browser = Browser(to_write, from_read)
    try:
        yield browser
        browser.call("Browser.close")
    finally:
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(to_write)
        os.close(from_read)
