"""A headless browser that looks at a page until it shows what it should: what people see, not what an API says."""

from __future__ import annotations

import base64
import json
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from websockets.sync.client import ClientConnection, connect

from tests.flows.prefect_help import eventually, free_port

OPTIONS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --hide-scrollbars --window-size=1500,1000 "
    "--disable-background-networking --disable-component-update --disable-sync"
).split()


class Page:
    """A tab of the browser, spoken to in its debugging protocol."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection, self._number = connection, 0

    def _ask(self, method: str, **parameters: object) -> dict[str, Any]:
        self._number += 1
        self._connection.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            answer: dict[str, Any] = json.loads(self._connection.recv(timeout=60))
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                found: dict[str, Any] = answer["result"]
                return found

    def text(self) -> str:
        """The text that is shown."""
        found = self._ask("Runtime.evaluate", expression="document.body ? document.body.innerText : ''")
        return str(found["result"]["value"])

    def shows(self, address: str, words: list[str], picture: Path) -> str:
        """Open an address, wait until it shows all of `words`, keep a picture, and return its whole text."""
        self._ask("Page.navigate", url=address)
        eventually(lambda: not [w for w in words if w not in self.text()], f"{address} shows {words}")
        picture.write_bytes(base64.b64decode(self._ask("Page.captureScreenshot")["data"]))
        return self.text()


@contextmanager
def opened(browser: str) -> Iterator[Page]:
    """Start a browser, and end it."""
    port = free_port()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [browser, *OPTIONS, f"--user-data-dir={profile}", f"--remote-debugging-port={port}", "about:blank"]
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            address = str(eventually(lambda: _tab(port), "the browser has a tab"))
            with connect(address, max_size=None, proxy=None) as connection:
                yield Page(connection)
        finally:
            child.terminate()
            child.wait(30)


def _tab(port: int) -> str | None:
    try:
        tabs = httpx.get(f"http://127.0.0.1:{port}/json", trust_env=False, timeout=10).json()
    except httpx.TransportError:
        return None
    return next((tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page"), None)
