"""Reads regular expressions of RE2's syntax (Go regexp/syntax) into trees."""

import unicodedata
from dataclasses import dataclass
from typing import Final, TypeAlias

from bayplan.cel.regex_characters import CATEGORIES, PERL, POSIX, Test, folded, negation, within


class RegexError(ValueError):
    """A text that is no regular expression; the message is Go's where that is known."""

    def __init__(self, what: str, piece: str) -> None:
        super().__init__(f"error parsing regexp: {what}: `{piece}`")


@dataclass(frozen=True, slots=True)
class Character:
    """One character that `test` takes."""

    test: Test


@dataclass(frozen=True, slots=True)
class Anchor:
    """A place: `kind` is one of ^ $ A z b B."""

    kind: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """One part after the other."""

    parts: tuple["Pattern", ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the parts, the first rather than the others."""

    parts: tuple["Pattern", ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A part `least` to `most` times, -1 being any number, as often as can be or, if `lazy`, as seldom."""

    part: "Pattern"
    least: int
    most: int
    lazy: bool


Pattern: TypeAlias = Character | Anchor | Sequence | Choice | Repeat

DEEPEST: Final = 50
_MOST_TIMES: Final = 1000
_SIMPLE: Final = {"*": (0, -1), "+": (1, -1), "?": (0, 1)}
_CONTROLS: Final = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}


def parse_pattern(text: str) -> Pattern:
    """Return the tree of a regular expression.

    Raises:
        RegexError: It is none.
    """
    reader = _Reader(text)
    tree = reader.choice(0)
    if not reader.done():
        raise RegexError("unexpected )", text)
    return tree


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._flags = frozenset[str]()

    def done(self) -> bool:
        return self._at >= len(self._text)

    def _ahead(self, piece: str) -> bool:
        return self._text.startswith(piece, self._at)

    def choice(self, depth: int) -> Pattern:
        if depth > DEEPEST:
            raise RegexError("expression nests too deeply", self._text)
        outside = self._flags
        parts = [self._sequence(depth)]
        while self._ahead("|"):
            self._at += 1
            parts.append(self._sequence(depth))
        self._flags = outside
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def _sequence(self, depth: int) -> Pattern:
        parts: list[Pattern] = []
        while not self.done() and self._text[self._at] not in "|)":
            start = self._at
            if self._ahead("\\Q"):
                end = self._text.find("\\E", start)
                literal = self._text[start + 2 : end if end >= 0 else None]
                self._at = len(self._text) if end < 0 else end + 2
                parts += [self._literal(each) for each in literal]
            elif self._times() is not None:
                raise RegexError("missing argument to repetition operator", self._text[start : self._at])
            elif (part := self._atom(depth)) is not None:
                parts.append(part)
            if parts and self._at > start:
                parts[-1] = self._repeated(parts[-1])
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _repeated(self, part: Pattern) -> Pattern:
        before, repeated = self._at, False
        while (times := self._times()) is not None:
            lazy = self._ahead("?")
            self._at += lazy
            if repeated:
                raise RegexError("invalid nested repetition operator", self._text[before : self._at])
            repeated = True
            part = Repeat(part, *times, lazy != ("U" in self._flags))
        return part

    def _times(self) -> tuple[int, int] | None:
        if self.done():
            return None
        sign = self._text[self._at]
        if sign in _SIMPLE:
            self._at += 1
            return _SIMPLE[sign]
        if sign != "{":
            return None
        end = self._text.find("}", self._at)
        least, comma, most = self._text[self._at + 1 : end].partition(",")
        # What does not read as a count stands for itself.
        if end < 0 or not _is_number(least) or (most and not _is_number(most)):
            return None
        piece = self._text[self._at : end + 1]
        self._at = end + 1
        low = int(least[:6])
        high = int(most[:6]) if most else (-1 if comma else low)
        if low > _MOST_TIMES or high > _MOST_TIMES or 0 <= high < low:
            raise RegexError("invalid repeat count", piece)
        return low, high

    def _literal(self, char: str) -> Pattern:
        return self._character(char.__eq__)

    def _character(self, test: Test) -> Pattern:
        return Character(folded(test) if "i" in self._flags else test)

    def _atom(self, depth: int) -> Pattern | None:  # noqa: PLR0911 - one for each kind of atom
        char = self._text[self._at]
        if char == "(":
            return self._group(depth)
        if char == "[":
            return self._class()
        if char == "\\":
            return self._escaped()
        self._at += 1
        if char == ".":
            return Character((lambda each: True) if "s" in self._flags else (lambda each: each != "\n"))
        if char == "^":
            return Anchor("^" if "m" in self._flags else "A")
        if char == "$":
            return Anchor("$" if "m" in self._flags else "z")
        return self._literal(char)

    def _group(self, depth: int) -> Pattern | None:
        start = self._at
        self._at += 1
        outside = self._flags
        if self._ahead("?"):
            self._at += 1
            if self._ahead("P<") or self._ahead("<"):
                self._name(start)
            elif self._flags_alone(start):
                return None
        inner = self.choice(depth + 1)
        self._flags = outside
        if not self._ahead(")"):
            raise RegexError("missing closing )", self._text)
        self._at += 1
        return inner

    def _name(self, start: int) -> None:
        opening = self._text.index("<", start)
        end = self._text.find(">", opening)
        name = self._text[opening + 1 : end] if end >= 0 else ""
        if self._text[opening + 1 : opening + 2] in ("=", "!") or (end < 0 and self._text[opening - 1] != "P"):
            raise RegexError(
                "invalid or unsupported Perl syntax",
                self._text[start : opening + 1 + (self._text[opening + 1 : opening + 2] in ("=", "!"))],
            )
        if not name or not name.isascii() or not name.replace("_", "a").isalnum():
            raise RegexError("invalid named capture", self._text[start : end + 1 if end >= 0 else None])
        self._at = end + 1

    def _flags_alone(self, start: int) -> bool:
        flags, negative = set(self._flags), False
        while not self.done():
            char = self._text[self._at]
            self._at += 1
            if char in "imsU":
                (flags.discard if negative else flags.add)(char)
            elif char == "-" and not negative:
                negative = True
            elif char in ":)":
                self._flags = frozenset(flags)
                return char == ")"
            else:
                break
        raise RegexError("invalid or unsupported Perl syntax", self._text[start : self._at])

    def _escaped(self) -> Pattern:
        letter = self._text[self._at + 1 : self._at + 2]
        if letter and letter in "AzbB":
            self._at += 2
            return Anchor(letter)
        return self._character(self._shared_class() or self._escaped_character().__eq__)

    def _shared_class(self) -> Test | None:
        """One of the classes that stand inside and outside of brackets alike."""
        start = self._at
        letter = self._text[start + 1 : start + 2]
        if letter and letter in "dswDSW":
            self._at += 2
            test = within(PERL[letter.lower()])
            return negation(test) if letter.isupper() else test
        if not letter or letter not in "pP":
            return None
        end = self._text.find("}", start) if self._text[start + 2 : start + 3] == "{" else start + 2
        name = self._text[start + 2 : end + 1].strip("{}")
        self._at = end + 1
        positive = name.startswith("^") == (letter == "P")
        name = name.removeprefix("^")
        if end < start or (name not in CATEGORIES and name != "Any"):
            raise RegexError("invalid character class range", self._text[start : end + 1])

        def of_category(char: str) -> bool:
            return name == "Any" or unicodedata.category(char).startswith(name)

        return of_category if positive else negation(of_category)

    def _escaped_character(self) -> str:
        start = self._at
        letter = self._text[start + 1 : start + 2]
        self._at += 2
        if not letter:
            raise RegexError("trailing backslash at end of expression", "")
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if letter == "x":
            braced = self._ahead("{")
            end = self._text.find("}", self._at) if braced else self._at + 1
            digits = self._text[self._at + braced : end + (not braced)]
            if (
                0 < len(digits) < 9
                and all(each in "0123456789abcdefABCDEF" for each in digits)
                and (braced or len(digits) == 2)
            ):
                self._at = end + 1
                if int(digits, 16) < 0x110000:
                    return chr(int(digits, 16))
        elif letter in "01234567" and (letter == "0" or self._text[self._at : self._at + 1] in set("01234567")):
            octal = letter
            while len(octal) < 3 and not self.done() and self._text[self._at] in "01234567":
                octal += self._text[self._at]
                self._at += 1
            return chr(int(octal, 8))
        elif letter.isascii() and not letter.isalnum() and letter != "_":
            return letter
        raise RegexError("invalid escape sequence", self._text[start : self._at])

    def _class(self) -> Pattern:
        start = self._at
        self._at += 1
        negated = self._ahead("^")
        self._at += negated
        tests: list[Test] = []
        first = True
        while first or not self._ahead("]"):
            first = False
            if self.done():
                raise RegexError("missing closing ]", self._text[start:])
            if self._ahead("[:") and (end := self._text.find(":]", self._at)) >= 0:
                name = self._text[self._at + 2 : end]
                if name.removeprefix("^") not in POSIX:
                    raise RegexError("invalid character class range", self._text[self._at : end + 2])
                test = within(POSIX[name.removeprefix("^")])
                tests.append(negation(test) if name.startswith("^") else test)
                self._at = end + 2
            elif self._ahead("\\") and (shared := self._shared_class()) is not None:
                tests.append(shared)
            else:
                tests.append(self._range(start))
        self._at += 1
        found = tests[0] if len(tests) == 1 else lambda char: any(test(char) for test in tests)
        test = folded(found) if "i" in self._flags else found
        return Character(negation(test) if negated else test)

    def _range(self, opening: int) -> Test:
        start = self._at
        low = high = self._class_character(opening)
        if self._ahead("-") and not self._text.startswith("]", self._at + 1) and self._at + 1 < len(self._text):
            self._at += 1
            high = self._class_character(opening)
            if high < low:
                raise RegexError("invalid character class range", self._text[start : self._at])
        return lambda char: low <= char <= high

    def _class_character(self, opening: int) -> str:
        if self.done():
            raise RegexError("missing closing ]", self._text[opening:])
        if self._ahead("\\"):
            return self._escaped_character()
        self._at += 1
        return self._text[self._at - 1]


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and (len(text) == 1 or text[0] != "0")
