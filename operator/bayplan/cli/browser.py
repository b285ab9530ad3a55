"""Opens the page that a command serves in a browser, and tells nobody else of this machine its address."""

import sys
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import click


@contextmanager
def opener(command: str, *, browser: bool) -> Iterator[Callable[[str], None]]:
    """Give what prints the address of a page, and opens it if `browser` and there is one outside of terminals.

    The address lets its first visitor in, and the arguments of a program are for every user to read. So the browser is
    told of a file that leads there, which this user alone may read, and which is there until the block ends.
    """
    with TemporaryDirectory(prefix="bayplan-", ignore_cleanup_errors=True) as folder:

        def opened(address: str) -> None:
            click.echo(f"{command}: {address}")
            click.echo("The address is good for one browser, once. Ctrl-C ends it.")
            sys.stdout.flush()
            if browser:
                leading = Path(folder) / "open.html"
                leading.touch(0o600)
                leading.write_text(f'<!doctype html><meta http-equiv="refresh" content="0; url={address}">\n')
                # The browser may want the page before it returns, so the server does not wait for it.
                threading.Thread(target=_open, args=(leading.as_uri(),), daemon=True).start()

        yield opened


def _open(address: str) -> None:
    # Raised where there is none: the address is printed.
    with suppress(webbrowser.Error):
        found = webbrowser.get()
        # One that runs in this terminal would take it over.
        if isinstance(found, webbrowser.BackgroundBrowser) or not isinstance(found, webbrowser.GenericBrowser):
            found.open(address)
