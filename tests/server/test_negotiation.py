import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayplan.server.negotiation import JSON, TEXT, YAML, Clause, Form, Kind, clauses_of, negotiate

BETA = Kind("config.k8s.io", "v1beta1", "Statusz")
AS_BETA = "v=v1beta1;g=config.k8s.io;as=Statusz"


def media_types(header):
    return [f"{each.type}/{each.subtype}" for each in clauses_of(header)]


def test_what_is_wanted_most_comes_first_and_stars_last_among_equals():
    assert media_types("a/b;q=0.1, */*, c/*, d/e;q=0.9, f/g") == ["f/g", "c/*", "*/*", "d/e", "a/b"]


def test_parameters_are_read_without_their_spaces():
    (clause,) = clauses_of(" a/b ; q = 0.5 ;v= v1; g=x")
    assert clause == Clause("a", "b", 0.5, {"v": "v1", "g": "x"})


@pytest.mark.parametrize("part", ["", "a", "a/", "a/b/c", ";", "/", ";q=1"])
def test_what_is_no_media_type_is_left_out(part):
    assert media_types(f"{part}, x/y") == ["x/y"]


@pytest.mark.parametrize("option", ["v", "v=", "v=a=b", "=", ""])
def test_what_is_no_parameter_is_left_out(option):
    assert clauses_of(f"a/b;{option};g=x") == [Clause("a", "b", 1.0, {"g": "x"})]


@pytest.mark.parametrize("quality", ["x", "nan", "inf", "-inf", "1e999"])
def test_a_quality_that_is_no_number_counts_as_none(quality):
    assert media_types(f"a/b;q={quality}, c/d;q=0.1") == ["c/d", "a/b"]


@pytest.mark.parametrize(
    ("header", "form"),
    [
        ("text/plain", Form(TEXT, None, False)),
        ("text/*", Form(TEXT, None, False)),
        ("*/*", Form(TEXT, None, False)),
        ("*", Form(TEXT, None, False)),
        (f"application/json;{AS_BETA}", Form(JSON, BETA, False)),
        (f"application/yaml;{AS_BETA}", Form(YAML, BETA, False)),
        (f"application/*;{AS_BETA}", Form(JSON, BETA, False)),
        (f"*/*;{AS_BETA}", Form(JSON, BETA, False)),
        (f"application/json;{AS_BETA};pretty=1", Form(JSON, BETA, True)),
        (f"application/json;{AS_BETA};pretty=true", Form(JSON, BETA, False)),
        (f"application/json;{AS_BETA};unknown=1", Form(JSON, BETA, False)),
        ("application/json, text/plain;q=0.5", Form(TEXT, None, False)),
        (f"text/plain;q=0.5, application/yaml;{AS_BETA}", Form(YAML, BETA, False)),
    ],
)
def test_what_there_is_is_given(header, form):
    assert negotiate(header, [BETA]) == form


@pytest.mark.parametrize(
    "header",
    [
        "application/json",
        "application/yaml;v=v1;g=config.k8s.io;as=Statusz",
        "application/json;v=v1beta1;as=Statusz",
        f"application/cbor;{AS_BETA}",
        f"text/plain;{AS_BETA}",
        f"application/json;{AS_BETA};stream=watch",
        "text/plain;sv=v1",
        "text/html",
        "garbage",
    ],
)
def test_what_there_is_not_is_not_given(header):
    assert negotiate(header, [BETA]) is None


def test_who_cannot_be_served_is_refused_in_what_it_reads():
    assert negotiate("application/yaml, application/json;q=0.3", (None,)) == Form(YAML, None, False)
    assert negotiate("application/json;pretty=1", (None,)) == Form(JSON, None, True)
    assert negotiate(f"application/json;{AS_BETA}", (None,)) is None


def test_the_content_type_names_the_kind():
    assert Form(JSON, None, False).content_type == JSON
    assert Form(YAML, BETA, False).content_type == "application/yaml;g=config.k8s.io;v=v1beta1;as=Statusz"


@given(st.text(st.sampled_from(" */;,=abqv01.")))
def test_any_header_has_an_answer(header):
    form = negotiate(header, [BETA])
    assert form is None or (form.kind is None) == (form.media_type == TEXT)
    negotiate(header, (None,))
