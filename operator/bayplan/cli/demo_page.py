"""The page of `bayplan demo --web`: the packed cluster once it is full, as urgent pods come."""

import asyncio
import os
import sys
import threading
import webbrowser
from contextlib import suppress
from typing import Final

import click
from click.exceptions import Exit

from bayplan.simulate.strategy_comparison import StrategyComparison
from bayplan.web.serve import loopback_socket, serve
from bayplan.web.snapshot import SnapshotSource

_NOT_SERVED: Final = 1


def open_page(comparison: StrategyComparison, *, browser: bool) -> None:
    """Serve the page until Ctrl-C, on this machine alone; opened in a browser if that is wanted and there is one."""
    configuration, objects = comparison.filled_and_packed()
    source = SnapshotSource(configuration, objects, name="bayplan demo")

    def opened(address: str) -> None:
        click.echo(f"bayplan demo: {address}")
        click.echo("The address is good for one browser, once. Ctrl-C ends it.")
        sys.stdout.flush()
        if browser:
            # The browser may want the page before it returns, so the server does not wait for it.
            threading.Thread(target=_open, args=(address,), daemon=True).start()

    try:
        listening = loopback_socket(0)
    except OSError as error:
        click.echo(f"bayplan demo: 127.0.0.1: {os.strerror(error.errno or 0)}", err=True)
        raise Exit(_NOT_SERVED) from None
    with listening:
        asyncio.run(serve(source, source.inspector, listening, opened))


def _open(address: str) -> None:
    # Raised where there is none: the address is printed.
    with suppress(webbrowser.Error):
        found = webbrowser.get()
        # One that runs in this terminal would take it over.
        if isinstance(found, webbrowser.BackgroundBrowser) or not isinstance(found, webbrowser.GenericBrowser):
            found.open(address)
