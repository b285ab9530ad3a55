"""Nodes over time as a picture: a line for each configuration, and the lower bound below them."""

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Final

from bayplan.config.errors import InputError
from bayplan.replay.outcome import Outcome
from bayplan.shown_text import printable

_WIDTH: Final = 800
_HEIGHT: Final = 400
_LEFT: Final = 60
_TOP: Final = 30
_COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Those of Okabe and Ito, which colour-blind people tell apart."""
_PAGE: Final = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>bayplan replay</title></head>
<body style="max-width: 60rem; margin: auto">
{}</body>
</html>
"""


def check_drawable(path: Path) -> None:
    """Refuse a file that could not be drawn, before hours are spent on it.

    Raises:
        InputError: PNG is asked for, and what makes it is not installed.
    """
    if path.suffix.lower() == ".png":
        try:
            import resvg_py  # noqa: F401, PLC0415 - an extra
        except ImportError:
            raise InputError("--plot: PNG needs the package resvg-py: pip install 'bayplan[png]'") from None


def draw(path: Path, outcomes: Sequence[tuple[str, Outcome]]) -> None:
    """Write the picture of some named outcomes, at least one: PNG or a page of HTML by its ending, and SVG otherwise.

    Raises:
        OSError: it cannot be written.
    """
    picture = svg(outcomes)
    match path.suffix.lower():
        case ".png":
            from resvg_py import svg_to_bytes  # noqa: PLC0415 - an extra

            path.write_bytes(svg_to_bytes(svg_string=picture, zoom=2))
        case ".html":
            path.write_text(_PAGE.format(picture))
        case _:
            path.write_text(picture)


def svg(outcomes: Sequence[tuple[str, Outcome]]) -> str:
    """Return the picture of some named outcomes, at least one; the lower bound is that of the first."""
    end = max(each.moments[-1].seconds for _, each in outcomes) or 1.0
    most = max(max(moment.nodes for moment in each.moments) for _, each in outcomes) or 1
    lines = [
        (name, _COLOURS[index % len(_COLOURS)], _points([(m.seconds, m.nodes) for m in each.moments], end, most))
        for index, (name, each) in enumerate(outcomes)
    ]
    bound = [(moment.seconds, moment.lower_bound_nodes) for moment in outcomes[0][1].moments]
    lines.append(("no packing needs fewer", "#777777", _points(bound, end, most)))
    height = _TOP + _HEIGHT + 40 + 20 * len(lines)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 20} {height}"',
        'font-family="sans-serif" font-size="13">',
        f'<rect width="100%" height="100%" fill="white"/><text x="{_LEFT}" y="20">nodes over hours</text>',
        *_axes(end, most),
    ]
    for index, (name, colour, points) in enumerate(lines):
        y = _TOP + _HEIGHT + 50 + 20 * index
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{points}"/>')
        parts.append(f'<path d="M{_LEFT} {y - 4}h30" stroke="{colour}" stroke-width="3"/>')
        parts.append(f'<text x="{_LEFT + 40}" y="{y}">{escape(printable(name))}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _axes(end: float, most: int) -> Iterator[str]:
    for part in range(5):
        x, y = _LEFT + _WIDTH * part / 4, _TOP + _HEIGHT - _HEIGHT * part / 4
        yield f'<path d="M{_LEFT} {y:.0f}h{_WIDTH}" stroke="#dddddd"/>'
        yield f'<text x="{_LEFT - 8}" y="{y + 4:.0f}" text-anchor="end">{most * part / 4:,.0f}</text>'
        yield f'<text x="{x:.0f}" y="{_TOP + _HEIGHT + 20}" text-anchor="middle">{end / 3600 * part / 4:.3g}</text>'


def _points(steps: Sequence[tuple[float, int]], end: float, most: int) -> str:
    return " ".join(
        f"{_LEFT + _WIDTH * seconds / end:.1f},{_TOP + _HEIGHT - _HEIGHT * nodes / most:.1f}"
        for seconds, nodes in steps
    )
