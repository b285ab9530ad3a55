"""Files nobody has checked: what they mean, and that none of them hurts."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.config.document import MAX_BYTES, MAX_DEPTH, MAX_VALUES, parse_document, read_data
from bayplan.config.errors import ConfigurationError, FieldError


def parse(text: str | bytes) -> dict:
    errors: list[FieldError] = []
    document = parse_document(text.encode() if isinstance(text, str) else text, errors)
    assert errors == []
    return document


def complaint(text: str | bytes) -> str:
    errors: list[FieldError] = []
    try:
        parse_document(text.encode() if isinstance(text, str) else text, errors)
    except ConfigurationError as error:
        return str(error)
    return "\n".join(str(error) for error in errors)


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("true", True),
        ("yes", True),
        ("On", True),
        ("n", False),
        ("16", 16),
        ("-3", -3),
        ("0x10", 16),
        ("010", 8),
        ("0o10", 8),
        ("0b11", 3),
        ("1_000", 1000),
        ("1.5", 1.5),
        ("1e1", 10.0),
        (".5", 0.5),
        ("08", 8.0),
        ("2020-01-01", "2020-01-01"),
        ("12:30", "12:30"),
        ('"16"', "16"),
        ("'yes'", "yes"),
        ("!!str 16", "16"),
        ("cpu", "cpu"),
        ("9" * 65, "9" * 65),
    ],
)
def test_scalars_mean_what_they_mean_to_kube_scheduler(scalar, value):
    result = parse(f"a: {scalar}\n")["a"]
    assert result == value
    assert type(result) is type(value)


def test_infinity_and_nan_are_floats():
    assert parse("a: -.inf")["a"] == float("-inf")
    assert parse("a: .nan")["a"] != parse("a: .nan")["a"]


def test_json_is_read_with_tabs_and_escapes():
    assert parse('{\n\t"a": [1, 2.0, null, true],\n\t"b\\/": "\\u0041"\n}') == {"a": [1, 2.0, None, True], "b/": "A"}


def test_json_may_escape_surrogate_pairs():
    assert parse('{"a": "\\ud83d\\ude00 \\\\ud83d\\u00e9"}') == {"a": "\U0001f600 \\ud83d\u00e9"}


def test_a_byte_order_mark_is_skipped():
    assert parse(b"\xef\xbb\xbfa: 1") == {"a": 1}


def test_aliases_and_merge_keys_work():
    text = "base: &b {x: 1, y: 2}\nlist: [*b, *b]\nmerged: {<<: *b, y: 3}\nboth: {<<: [*b, {z: 4}]}"
    document = parse(text)
    assert document["list"] == [{"x": 1, "y": 2}] * 2
    assert document["merged"] == {"x": 1, "y": 3}
    assert document["both"] == {"x": 1, "y": 2, "z": 4}


def test_a_quoted_merge_key_is_an_ordinary_key():
    assert parse('"<<": 1') == {"<<": 1}


def test_merging_something_else_is_an_error():
    assert complaint("a: {<<: 5}") == "a: map merge requires map or sequence of maps as the value"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\nb: 2\na: 3", 'a: line 3: key "a" already set in map'),
        ('{"a": {"b": 1, "b": 1}}', 'a.b: line 1: key "b" already set in map'),
        ("a: [{b: 1}, {c: 1, c: 2}]", 'a[1].c: line 1: key "c" already set in map'),
    ],
)
def test_a_repeated_key_is_reported_with_its_path_and_line(text, expected):
    assert complaint(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "is empty"),
        ("# nothing\n", "is empty"),
        ("---\n", "is empty"),
        ("null", "is empty"),
        ("5", "must be an object with apiVersion and kind"),
        ("[a]", "must be an object with apiVersion and kind"),
        ("just words", "must be an object with apiVersion and kind"),
        ("a: 1\n---\nb: 1\n", "line 2: must hold one document"),
        ("a: [", "is neither YAML nor JSON: line 2: did not find expected node content"),
        ("a: b: c", "is neither YAML nor JSON: line 1: mapping values are not allowed in this context"),
        (b"a: \x00", "is neither YAML nor JSON: character 3 is not allowed"),
        (b"a: \x1b[31m", "is neither YAML nor JSON: character 3 is not allowed"),
        (b"\x00\x01\x02\xff", "is not UTF-8 text: byte 3 is wrong"),
        ("a: 1".encode("utf-16"), "is not UTF-8 text: byte 0 is wrong"),
        ("ä".encode("latin-1"), "is not UTF-8 text: byte 0 is wrong"),
        ("a: !!python/object/apply:os.system [id]", 'line 1: tag "tag:yaml.org,2002:python/object/apply:os.system"'),
        ("a: !!binary aGk=", 'line 1: tag "tag:yaml.org,2002:binary" is not supported'),
        ("a: !local b", 'line 1: tag "!local" is not supported'),
        ("a: *b", 'line 1: alias "b" has no anchor before it'),
        ("a: &a [*a]", 'a: line 1: alias "a" is inside its own value'),
        ("a: &a 1\nb: &a {c: {d: *a}}", 'b.c: line 2: alias "a" is inside its own value'),
        ("? [a]\n: b", "line 1: a key must be a string"),
        ("? {a: b}\n: b", "line 1: a key must be a string"),
        ("b: &x k\n? *x\n: b", "line 2: a key must be a string"),
    ],
)
def test_what_is_no_object_is_one_clear_error(text, expected):
    assert complaint(text).startswith(expected)
    assert "\n" not in complaint(text)


def test_a_file_of_ten_megabytes_is_too_large():
    assert complaint(b"a: " + b"x" * 10_000_000) == f"is larger than {MAX_BYTES} bytes"


@pytest.mark.parametrize("opening", ["[", '{"a":', "a:\n - "])
def test_deep_nesting_is_an_error(opening):
    text = opening * 100_000 if "\n" not in opening else "- " * 100_000
    assert "is nested more than" in complaint(text)


def test_nesting_up_to_the_limit_is_fine():
    document = parse("a: " + "[" * (MAX_DEPTH - 1) + "]" * (MAX_DEPTH - 1))
    assert isinstance(document["a"], list)
    assert "is nested more than" in complaint("a: " + "[" * MAX_DEPTH + "]" * MAX_DEPTH)


def test_depth_built_of_aliases_counts():
    lines = ["a0: &a0 [x]"] + [f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, MAX_DEPTH + 1)]
    assert "is nested more than" in complaint("\n".join(lines))


def bomb(first, following):
    return "\n".join([first, *(following(n, ", ".join([f"*a{n - 1}"] * 9)) for n in range(1, 20))])


@pytest.mark.parametrize(
    "text",
    [
        bomb("a0: &a0 [" + ",".join("x" * 9) + "]", lambda n, inner: f"a{n}: &a{n} [{inner}]"),
        bomb("a0: &a0 {x: 1}", lambda n, inner: f"a{n}: &a{n} {{k{n}: [{inner}], <<: *a{n - 1}}}"),
        "a: [" + "1," * (MAX_VALUES + 1) + "]",
    ],
    ids=["aliases", "merges", "plain"],
)
def test_many_values_and_what_unfolds_into_many_stop_at_the_limit(text):
    assert f"holds more than {MAX_VALUES} values, counting aliases" in complaint(text)


def test_a_directory_and_a_missing_file_cannot_be_read(tmp_path):
    for path, reason in (
        (tmp_path, "Is a directory"),
        (tmp_path / "missing", "No such file or directory"),
    ):
        with pytest.raises(ConfigurationError) as caught:
            read_data(path)
        assert str(caught.value) == f"{path}: cannot be read: {reason}"


def test_an_impossible_file_name_is_an_error():
    with pytest.raises(ConfigurationError) as caught:
        read_data(Path("a\0b"))
    assert str(caught.value) == '"a\\u0000b": cannot be read: embedded null byte'


def test_an_endless_file_is_too_large():
    with pytest.raises(ConfigurationError, match="is larger than"):
        parse_document(read_data(Path("/dev/zero")), [])


def test_keys_with_control_characters_are_escaped_in_errors():
    assert (
        complaint('"a\\e[31m": 1\n"a\\e[31m": 2') == '["a\\u001b[31m"]: line 2: key "a\\u001b[31m" already set in map'
    )


@pytest.mark.parametrize("text", ["{" * MAX_BYTES, "? " * (MAX_BYTES // 2), '"' + "a" * (MAX_BYTES - 2) + '"'])
def test_the_worst_files_of_allowed_size_are_refused(text):
    assert complaint(text)


@given(st.binary(max_size=200) | st.text(alphabet="{}[]:,-&*!|>'\"%@`#?~ \n\tab01.<", max_size=60).map(str.encode))
def test_any_bytes_give_an_object_or_a_configuration_error(data):
    errors: list[FieldError] = []
    try:
        assert isinstance(parse_document(data, errors), dict)
    except ConfigurationError as error:
        errors += error.errors
    assert all(str(error).isprintable() for error in errors)
