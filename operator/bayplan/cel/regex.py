"""Regular expressions, matched in time linear in the text.

Python's own engine goes back over what it tried: `(a*)*b` keeps it for years on an attribute of 64 bytes. Here all ways
through an expression are followed at once, in order of preference, and each set of ways that was met is kept with what
follows it (Cox, Regular Expression Matching: the Virtual Machine Approach).
"""

from functools import lru_cache
from typing import Final

from bayplan.cel.regex_syntax import Anchor, Character, Choice, Pattern, RegexError, Repeat, Sequence, parse_pattern

MOST_STEPS: Final = 2000
"""The largest expression, in characters to match and ways to go on."""

_KEPT: Final = 50_000
"""Steps and characters that are kept for one expression, some 10 MB; then all are worked out anew."""

_START, _AFTER_LINE, _AFTER_WORD, _AFTER_OTHER = range(4)
_Step = Character | Anchor | None


class _Ways:
    """The steps that may come next at one place of the text, best first; `follow` has what was found of characters."""

    __slots__ = ("anywhere", "before", "follow", "steps")

    def __init__(self, steps: tuple[int, ...], before: int, *, anywhere: bool) -> None:
        self.steps = steps
        self.before = before
        self.anywhere = anywhere
        self.follow: dict[str, tuple[_Ways | None, bool]] = {}


class Regex:
    """A compiled regular expression."""

    def __init__(self, text: str) -> None:
        self._steps: list[tuple[_Step, tuple[int, ...]]] = []
        self._kept: dict[tuple[tuple[int, ...], int, bool], _Ways] = {}
        self._size = 0
        self._text = text
        self._end = self._add(None, ())
        self._first = self._compiled(parse_pattern(text), self._end)

    def found(self, text: str) -> bool:
        """Return whether it matches somewhere in `text`."""
        return self._run(text, 0, anywhere=True) >= 0

    def spans(self, text: str, most: int) -> list[tuple[int, int]]:
        """Return where it matches in `text`: the leftmost, then what follows it, at most `most`, -1 being all."""
        spans: list[tuple[int, int]] = []
        at, last = 0, -1
        while at <= len(text) and len(spans) != most:
            end = self._run(text, at, anywhere=False)
            # An empty match right after another one is none: Go regexp.allMatches.
            if end > at or (end == at and at != last):
                spans.append((at, end))
                last = end
            at = max(end, at + 1)
        return spans

    def _add(self, step: _Step, after: tuple[int, ...]) -> int:
        if len(self._steps) >= MOST_STEPS:
            raise RegexError("expression too large", self._text)
        self._steps.append((step, after))
        return len(self._steps) - 1

    def _compiled(self, pattern: Pattern, after: int) -> int:
        """The first step of `pattern` when `after` comes after it. Steps without a character only fork."""
        if isinstance(pattern, Character | Anchor):
            return self._add(pattern, (after,))
        if isinstance(pattern, Sequence):
            for part in reversed(pattern.parts):
                after = self._compiled(part, after)
            return after
        if isinstance(pattern, Choice):
            return self._add(None, tuple(self._compiled(part, after) for part in pattern.parts))
        return self._compiled_repeat(pattern, after)

    def _compiled_repeat(self, repeat: Repeat, after: int) -> int:
        start = after
        if repeat.most < 0:
            loop = self._add(None, ())
            body = self._compiled(repeat.part, loop)
            self._steps[loop] = (None, (after, body) if repeat.lazy else (body, after))
            start = loop
        else:
            for _ in range(repeat.most - repeat.least):
                body = self._compiled(repeat.part, start)
                start = self._add(None, (after, body) if repeat.lazy else (body, after))
        for _ in range(repeat.least):
            start = self._compiled(repeat.part, start)
        return start

    def _run(self, text: str, at: int, *, anywhere: bool) -> int:
        """Where the best match that begins at `at` ends, or -1; with `anywhere`, where some match ends."""
        before = _START if at == 0 else _kind(text[at - 1])
        ways: _Ways | None = self._ways((self._first,), before, anywhere=anywhere)
        end = -1
        for place in range(at, len(text) + 1):
            char = text[place : place + 1]
            assert ways is not None
            known = ways.follow.get(char)
            if known is None:
                known = ways.follow[char] = self._followed(ways, char)
            ways, matched = known
            if matched:
                end = place
                if anywhere:
                    return end
            if ways is None:
                break
        return end

    def _ways(self, steps: tuple[int, ...], before: int, *, anywhere: bool) -> _Ways:
        key = (steps, before, anywhere)
        if (kept := self._kept.get(key)) is None:
            self._size += len(steps)
            kept = self._kept[key] = _Ways(steps, before, anywhere=anywhere)
        return kept

    def _followed(self, ways: _Ways, char: str) -> tuple[_Ways | None, bool]:
        self._size += 1
        if self._size > _KEPT:
            for each in self._kept.values():
                each.follow.clear()
            self._kept.clear()
            self._size = 0
        following: dict[int, None] = {}
        seen: set[int] = set()
        stack = list(reversed(ways.steps))
        matched = False
        while stack:
            number = stack.pop()
            if number in seen:
                continue
            seen.add(number)
            step, after = self._steps[number]
            if number == self._end:
                # What is left is worse than this match.
                matched = True
                break
            if step is None or (isinstance(step, Anchor) and _stands(step.kind, ways.before, char)):
                stack.extend(reversed(after))
            elif isinstance(step, Character) and char and step.test(char):
                following[after[0]] = None
        if ways.anywhere and char:
            following[self._first] = None
        if not following:
            return None, matched
        return self._ways(tuple(following), _kind(char), anywhere=ways.anywhere), matched


def _kind(char: str) -> int:
    if char == "\n":
        return _AFTER_LINE
    return _AFTER_WORD if char.isascii() and (char.isalnum() or char == "_") else _AFTER_OTHER


def _stands(kind: str, before: int, char: str) -> bool:
    if kind == "A":
        return before == _START
    if kind == "z":
        return not char
    if kind == "^":
        return before in (_START, _AFTER_LINE)
    if kind == "$":
        return not char or char == "\n"
    border = (before == _AFTER_WORD) != (bool(char) and _kind(char) == _AFTER_WORD)
    return border == (kind == "b")


@lru_cache(maxsize=64)
def regex(text: str) -> Regex:
    """Return the compiled form of `text`.

    Raises:
        RegexError: It is no regular expression.
    """
    return Regex(text)
