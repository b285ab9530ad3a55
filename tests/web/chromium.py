"""What the tests of the page have in common with its bench: a server for any source, and a tab that notes faults."""

import asyncio
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiohttp import web

from bayplan.web.serve import Guard, loopback_socket, make_app
from bayplan.web.updates import Updates

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def executable() -> tuple[str | None, list[str]]:
    """The browser of this machine, None without one, and the flags it needs."""
    found = os.environ.get("BAYPLAN_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    # As root Chromium has no sandbox of its own.
    return found, ["--no-sandbox"] if os.geteuid() == 0 else []


_SECRETS = {}
_TIMEOUT_MS = 180_000
"""Only ends what hangs: a busy machine is no fault of the page."""


class Tab:
    """A page in the browser, and whatever it did that it must not do."""

    def __init__(self, browser: "Browser", *, before: str = "", **settings: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}} | settings)
        self.context.set_default_timeout(_TIMEOUT_MS)
        self.page = self.context.new_page()
        self.faults = []
        self.hosts = set()
        self.page.on("console", lambda said: self.faults.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("dialog", self._dialog)
        self.page.on("request", lambda asked: self.hosts.add(asked.url.split("/")[2]))
        self.page.add_init_script(
            "window.violations = [];"
            "document.addEventListener('securitypolicyviolation', (e) => window.violations.push(e.violatedDirective));"
            + before
        )

    def _dialog(self, dialog):
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def open(self, address: str, link: str = "") -> "Page":
        """Open the page; `link` is what its address says after the #, with it."""
        kept = _SECRETS.get(address)
        if kept is None:
            self.page.goto(address + link)
        else:
            # The address is good for one browser, whose secret this tab has as well.
            self.context.add_init_script(f"localStorage.setItem('bayplan-session', '{kept}')")
            self.page.goto("/".join([*address.split("/")[:3], link]))
        self.page.wait_for_selector("#map[data-drawn]")
        _SECRETS[address] = self.page.evaluate("localStorage.getItem('bayplan-session')")
        return self.page

    def violations(self) -> list[str]:
        return list(self.page.evaluate("window.violations"))


def start_command(file, *arguments):
    """Run `bayplan web` on a file; the address it prints, and the process, which is the caller's to end."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "operator"), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "bayplan", "web", "--cluster", str(file), "--no-browser", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    found = re.search(r"http://\S+", process.stdout.readline())
    assert found is not None, "no address was printed"
    return found[0], process


def end(process):
    """End it as Ctrl-C does, and return its exit code."""
    process.terminate()
    with process.stdout:
        return process.wait(180)


class ServedSource:
    """A page of any source, served by a thread of its own; `refresh` has the page follow what the source says now."""

    def __init__(self, source: Any, page: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._source = source
        self._call(self._start(page))

    def _call(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(180)

    async def _start(self, page):
        listening = loopback_socket(0)
        guard = Guard(listening.getsockname()[1])
        self._updates = Updates(self._source, page=page)
        app = make_app(self._source, self._updates, guard)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        await web.SockSite(self._runner, listening).start()
        self.address = guard.address

    def refresh(self, at: Any) -> None:
        self._call(self._updates.refresh(at, running=True))

    def show(self, topic: str, answer: bytes) -> None:
        """Have the page told what the source worked out itself."""
        self._call(self._updates.show(topic, answer))

    def end_streams(self):
        """End what open pages listen to, and take no new connection, as a server that ends."""
        self._call(self._stop())

    async def _stop(self):
        for site in [*self._runner.sites]:
            await site.stop()
        await self._updates.close()

    def close(self) -> None:
        self._call(self._runner.cleanup())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(180)
        self._loop.close()
