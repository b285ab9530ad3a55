import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.reference.requests import SUFFIXES, exact, fraction

from bayplan.api.quantity import (
    MAX_AMOUNT,
    TOO_MUCH,
    QuantityError,
    bounded,
    exact_nano,
    milli,
    value,
)

MILLI = 1000


def milli_value(quantity):
    return bounded(milli(quantity))


def _short(parameter):
    return repr(parameter)[:40]


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("0", 0),
        ("1", MILLI),
        (".5", MILLI // 2),
        ("5.", 5 * MILLI),
        ("+1", MILLI),
        (" 1", MILLI),
        ("1 ", MILLI),
        ("\xa01\u3000", MILLI),
        ("007", 7 * MILLI),
        ("00.10", MILLI // 10),
        ("100m", MILLI // 10),
        ("1u", 1),
        ("1n", 1),
        ("1k", 1000 * MILLI),
        ("1M", 10**6 * MILLI),
        ("1G", 10**9 * MILLI),
        ("1T", 10**12 * MILLI),
        ("1P", 10**15 * MILLI),
        ("1Ki", 1024 * MILLI),
        ("1Mi", 2**20 * MILLI),
        ("1Gi", 2**30 * MILLI),
        ("1Ti", 2**40 * MILLI),
        ("1Pi", 2**50 * MILLI),
        ("1e3", 1000 * MILLI),
        ("1E3", 1000 * MILLI),
        ("1e+3", 1000 * MILLI),
        ("1e-3", MILLI // 1000),
        ("1e00000000000000000000000000000003", 1000 * MILLI),
        ("0.5Ki", 512 * MILLI),
        ("128974848000m", 128974848 * MILLI),
        ("1.5Gi", 1610612736 * MILLI),
        ("100M", 100_000_000 * MILLI),
        (1, MILLI),
        (1.5, MILLI * 3 // 2),
        (1e-10, 1),
        ("1.0001", 1001),
        ("0.00049Ki", 502),
        (0, 0),
        (None, 0),
    ],
)
def test_a_quantity_is_read_as_the_api_server_reads_it(text, amount):
    assert milli(text) == amount


@pytest.mark.parametrize("text", ["0.1n", "1n", "0.0001", "1e-10", "1e-1000000", "1e-9223372036854775808"])
def test_an_amount_below_a_thousandth_is_rounded_up_to_one(text):
    assert milli(text) == 1
    assert milli_value(text) == 1
    assert value(text) == 1


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "1e", "1e+", "1K", "100mi", "1Zi", "1ki", "1KI", "NaN", "nan", "Inf", "inf", "-Inf", "0x10"),
        *("1_000", "\u0661", "1\u0661", "true", "null", "1 000", "1,5", "1.2.3", "1..2", "--1", "+-1", "1m5"),
        *("1Ei5", "1+5"),
        *("1mm", "1ee5", "1e5m", "1e5.", "1e 5", "\t1", "1\n", "1\x00", "\x1c1", "\u200b1", "1μ", "abc", "<script>"),
        *("1e9223372036854775808", "1e-9223372036854775809", "1e99999999999999999999"),
        *("m", "Ki", ".", "+", "-", ".m", "e5"),
        *(True, False, {}, [], b"1", float("nan"), float("inf"), float("-inf")),
    ],
    ids=_short,
)
def test_what_is_no_quantity_is_refused(text):
    with pytest.raises(QuantityError):
        milli(text)


@pytest.mark.parametrize(
    "text",
    [
        *("1e100", "1E", "9223372036854775807", "9223372036854775808", "8Ei", "16Ei", "1e1000000", "1e99999999"),
        *("1e2147483648", "1e9223372036854775807", "9" * 5000, 10**4000, 1e300, "64Pi", str(TOO_MUCH)),
    ],
    ids=_short,
)
def test_an_amount_no_node_has_is_too_much_and_never_wraps(text):
    assert milli_value(text) == TOO_MUCH
    assert value(text) == TOO_MUCH


def test_the_largest_amount_is_still_exact():
    assert value(str(MAX_AMOUNT)) == MAX_AMOUNT
    assert value(MAX_AMOUNT) == MAX_AMOUNT
    assert milli_value(f"{MAX_AMOUNT}m") == MAX_AMOUNT
    assert milli_value(f"{MAX_AMOUNT + 1}m") == TOO_MUCH
    assert value(f"{MAX_AMOUNT}.000000001") == TOO_MUCH


def test_a_hundred_times_the_largest_amount_fits_in_an_int64():
    assert 100 * TOO_MUCH < 2**63


@pytest.mark.parametrize("text", ["-1", "-100m", "-0", "-.5", "-1e1000000", -1, -1.5, -(10**4000)], ids=_short)
def test_a_negative_amount_counts_as_nothing(text):
    assert milli(text) == 0


@pytest.mark.parametrize(
    ("text", "milli", "whole"), [("1500m", 1500, 2), ("1.5m", 2, 1), ("2", 2000, 2), ("1Ki", 1024000, 1024)]
)
def test_fractions_are_rounded_up(text, milli, whole):
    assert milli_value(text) == milli
    assert value(text) == whole


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("0" * 10**6 + "1", MILLI),
        ("1." + "0" * 10**6, MILLI),
        ("1." + "0" * 10**6 + "1", MILLI + 1),
        ("0." + "0" * 10**6 + "1Ei", 1),
        ("1e" + "0" * 10**6 + "1", 10 * MILLI),
        ("1" + "0" * 10**6 + "e-1000000", MILLI),
    ],
    ids=_short,
)
def test_a_megabyte_of_digits_is_read_exactly(text, amount):
    assert milli(text) == amount


@pytest.mark.parametrize("text", ["1" * 10**6 + "x", "e" * 10**6, "1e" + "9" * 10**6, "k" * 10**6 + "1"], ids=_short)
def test_a_megabyte_of_nonsense_is_refused_with_a_short_message(text):
    with pytest.raises(QuantityError) as refusal:
        milli(text)
    assert len(str(refusal.value)) < 100


def test_the_message_shows_the_text_escaped():
    with pytest.raises(QuantityError, match=r"^not a quantity: '1\\n\\x1b\[31m'$"):
        milli("1\n\x1b[31m")


digits = st.text("0123456789", max_size=24)
numbers = st.builds(
    "{}{}.{}{}".format, st.sampled_from(["", "+"]), digits, digits, st.sampled_from(list(SUFFIXES))
).filter(lambda text: any(character.isdigit() for character in text))
exponents = st.builds("{}.{}{}{}".format, digits, digits, st.sampled_from("eE"), st.integers(-40, 30)).filter(
    lambda text: text[0].isdigit()
)


@given(numbers | exponents | st.integers(0, 2**70) | st.floats(0, 1e20))
@example(2**56)
@example("0.000000001000000000000000000000001Ei")
@example("99999999999999999999999999.9999999999999999999999n")
def test_amounts_agree_with_fractions(quantity):
    amount = exact(quantity)
    assert milli(quantity) == min(amount * MILLI, TOO_MUCH * MILLI * 10)
    assert milli_value(quantity) == min(-(-amount * 1000 // 1), TOO_MUCH)
    assert value(quantity) == min(-(-amount // 1), TOO_MUCH)


@given(st.text("0123456789.+-eEinumkKMGTP _x", max_size=80) | st.text(max_size=80))
def test_any_text_is_either_a_bounded_amount_or_refused(text):
    try:
        amount = milli(text)
    except QuantityError:
        return
    assert 0 <= amount <= TOO_MUCH * MILLI * 10


@given(numbers | exponents | st.integers(0, 2**70) | st.floats(0, 1e20), st.booleans())
@example("0.0000000001", True)
@example("1e-80", False)
def test_exact_amounts_agree_with_fractions_up_to_the_bounds_of_the_api_server(quantity, negative):
    if isinstance(quantity, str) and quantity.startswith("+"):
        quantity = quantity[1:]
    most = (2**63 - 1) * 10**9 if str(quantity).endswith("i") else 10**73
    wanted = min(-(-fraction(quantity) * 10**9 // 1), most)
    signed = f"-{quantity}" if isinstance(quantity, str) else -quantity
    assert exact_nano(signed if negative else quantity) == (-wanted if negative else wanted)


def test_what_is_no_quantity_has_no_exact_amount_and_an_absent_one_is_nothing():
    assert exact_nano(None) == 0
    for wrong in ("", "1 Gi", "1Zi", True, ["1"]):
        with pytest.raises(QuantityError):
            exact_nano(wrong)
