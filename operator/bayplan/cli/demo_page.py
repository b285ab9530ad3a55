"""The page of `bayplan demo --web`: the packed cluster once it is full, as urgent pods come."""

import asyncio
import os
from typing import Final

import click
from click.exceptions import Exit

from bayplan.cli.browser import opener
from bayplan.simulate.strategy_comparison import StrategyComparison
from bayplan.web.serve import loopback_socket, serve
from bayplan.web.snapshot import SnapshotSource

_NOT_SERVED: Final = 1


def open_page(comparison: StrategyComparison, *, browser: bool) -> None:
    """Serve the page until Ctrl-C, on this machine alone; opened in a browser if that is wanted and there is one."""
    configuration, objects = comparison.filled_and_packed()
    source = SnapshotSource(configuration, objects, name="bayplan demo")

    try:
        listening = loopback_socket(0)
    except OSError as error:
        click.echo(f"bayplan demo: 127.0.0.1: {os.strerror(error.errno or 0)}", err=True)
        raise Exit(_NOT_SERVED) from None
    with listening, opener("bayplan demo", browser=browser) as opened:
        asyncio.run(serve(source, source.inspector, listening, opened))
