"""Quantities and whole numbers, read as the API server stores them, and bounded whatever the text holds."""

import re
from functools import lru_cache

from bayplan.api.meta_objects import Quantity

MAX_AMOUNT: int = (2**63 - 1) // 128
"""The largest amount of a resource: 100 times it, and sums of a hundred of it, still fit in an int64."""

TOO_MUCH: int = MAX_AMOUNT + 1
"""Stands for every request above MAX_AMOUNT: no node has that much."""

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1

_MILLI = 1000
_NANO_OF_MILLI = 10**6
_WHOLE_BOUND = TOO_MUCH * 10
_BOUND = _WHOLE_BOUND * _MILLI

_INT64_DIGITS = 19
_DECIMAL = re.compile(r"([+-]?)([0-9]+)")

_CACHED_LENGTH = 64
_SHOWN_LENGTH = 64
# 2**60 divides 10**60: with 60 decimals kept, no cut digit carries a product with 2**60 over a whole number.
_KEPT_DECIMALS = 60
_EXACT_DIGITS = 64
_EXACT_BOUND: int = 10**_EXACT_DIGITS

# The API server trims these around the text. Tabs and line ends reach it as JSON escapes, which it refuses.
_BLANKS = " \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
_BLANKS += "\u2028\u2029\u202f\u205f\u3000"

# Possessive quantifiers: a megabyte of digits is scanned once, never backtracked over.
_GRAMMAR = re.compile(r"([+-]?+)([0-9]*+)(?:\.([0-9]*+))?+([eEinumkKMGTP]*+)([+-]?+[0-9]*+)")

DECIMAL_EXPONENTS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY_EXPONENTS = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
"""The powers of ten, and of two, that suffixes stand for."""


class QuantityError(ValueError):
    """A text that is no quantity; the message shows it, escaped and cut."""


def milli(quantity: Quantity) -> int:
    """The amount in thousandths, for sums that must be rounded once, at the end.

    The grammar is the API server's (apimachinery pkg/api/resource/quantity.go), less the texts without any digit:
    it takes some for 0 by accident, here they are refused. Finer amounts are rounded up, each by itself, as the API
    server does when it reads an object (pkg/apis/core/v1/defaults.go, SetDefaults_ResourceList). Negative amounts
    count as 0. Amounts too large for any node stop at a bound, so no giant integer ever exists, and time is linear in
    the length of the text.

    Raises:
        QuantityError: The text is no quantity.
    """
    if type(quantity) is str:
        return _milli_of_short_text(quantity) if len(quantity) <= _CACHED_LENGTH else _milli_of_text(quantity)
    if quantity is None:
        return 0
    if type(quantity) is int:
        # Compared before it is multiplied: the integer of a YAML file may have any length.
        return max(quantity, 0) * _MILLI if quantity < _WHOLE_BOUND else _BOUND
    if type(quantity) is float:
        return _milli_of_text(repr(quantity))
    raise _refusal(quantity)


def bounded(amount: int) -> int:
    """A sum of `milli` amounts, at most TOO_MUCH."""
    return amount if amount < TOO_MUCH else TOO_MUCH  # noqa: FURB136 - a call of min() costs as much as the rest


def value_of_milli(amount: int) -> int:
    """A sum of `milli` amounts in whole units, rounded up, at most TOO_MUCH."""
    rounded = -(-amount // _MILLI)
    return rounded if rounded < TOO_MUCH else TOO_MUCH  # noqa: FURB136 - a call of min() costs as much as the rest


def value(quantity: Quantity) -> int:
    """The amount in whole units, rounded up, in 0..TOO_MUCH.

    Raises:
        QuantityError: The text is no quantity.
    """
    return value_of_milli(milli(quantity))


def parse_int64(text: str) -> int | None:
    """Return the number in `text` as strconv.ParseInt in base 10 reads it, or None when that fails.

    It takes time linear in the length of the text.
    Python's int() would also take blanks, underscores and the digits of every script.
    """
    match = _DECIMAL.fullmatch(text)
    if match is None:
        return None
    digits = match[2].lstrip("0")
    if len(digits) > _INT64_DIGITS:
        return None
    number = int(f"{match[1]}{digits or '0'}")
    return number if INT64_MIN <= number <= INT64_MAX else None


def exact_nano(quantity: Quantity) -> int:
    """The amount in billionths, with its sign and as exact as the API server keeps it; devices are counted by it.

    Finer amounts are rounded away from zero. Binary amounts stop at 2**63 - 1 units, as upstream's do (quantity.go,
    ParseQuantity), decimal ones at 10**64, so no giant integer ever exists. None is 0.

    Raises:
        QuantityError: The text is no quantity.
    """
    if quantity is None:
        return 0
    if type(quantity) is int:
        return max(-_EXACT_BOUND, min(quantity, _EXACT_BOUND)) * 10**9
    text = repr(quantity) if type(quantity) is float else quantity
    if type(text) is not str:
        raise _refusal(quantity)
    return _exact_of_short_text(text) if len(text) <= _CACHED_LENGTH else _exact_of_text(text)


@lru_cache(maxsize=16384)
def _exact_of_short_text(text: str) -> int:
    return _exact_of_text(text)


def _exact_of_text(text: str) -> int:
    sign, digits, decimal, binary = _parts(text)
    if len(digits) + decimal > _EXACT_DIGITS:
        amount = _EXACT_BOUND * 10**9
    elif len(digits) + decimal + 9 < -_EXACT_DIGITS:
        amount = 1
    else:
        kept = max(len(digits) + decimal + 9 + _KEPT_DECIMALS, 0)
        lost = bool(digits[kept:].strip("0"))
        amount = (int(digits[:kept] or "0") + lost) << binary
        power = 9 + decimal + max(len(digits) - kept, 0)
        amount = amount * 10**power if power >= 0 else -(-amount // 10**-power)
    amount = min(amount, INT64_MAX * 10**9) if binary else amount
    return 0 if not digits else -amount if sign == "-" else amount


@lru_cache(maxsize=16384)
def _milli_of_short_text(text: str) -> int:
    return _milli_of_text(text)


def _milli_of_text(text: str) -> int:
    # To round up twice is to round up once. The bounds of exact amounts are above this one.
    return min(max(-(-_exact_of_text(text) // _NANO_OF_MILLI), 0), _BOUND)


def _parts(text: str) -> tuple[str, str, int, int]:
    """The sign, the digits without leading zeros, and the powers of ten and of two that multiply them."""
    match = _GRAMMAR.fullmatch(text.strip(_BLANKS))
    if match is None:
        raise _refusal(text)
    sign, whole, decimals, letters, exponent = match.groups(default="")
    binary = decimal = 0
    if exponent:
        parsed = parse_int64(exponent) if letters in ("e", "E") else None
        if parsed is None:
            raise _refusal(text)
        decimal = parsed
    elif letters in BINARY_EXPONENTS:
        binary = BINARY_EXPONENTS[letters]
    elif letters in DECIMAL_EXPONENTS:
        decimal = DECIMAL_EXPONENTS[letters]
    else:
        raise _refusal(text)
    digits = whole + decimals
    if not digits:
        raise _refusal(text)
    return sign, digits.lstrip("0"), decimal - len(decimals), binary


def _refusal(quantity: object) -> QuantityError:
    text = repr(quantity[: _SHOWN_LENGTH + 1] if isinstance(quantity, str) else quantity)
    return QuantityError(f"not a quantity: {text[:_SHOWN_LENGTH]}{'...' if len(text) > _SHOWN_LENGTH else ''}")
