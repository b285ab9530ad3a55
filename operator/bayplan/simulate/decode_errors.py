"""What decoding an object found wrong with it, in Kubernetes' words."""

import re
from typing import Final

from bayplan.config.errors import child, quote

_PROBLEM: Final = re.compile(r"(?P<problem>.*?)(?: - at `(?P<key>key in )?(?P<path>[^`]*)`)?", re.DOTALL)
_TYPES: Final = re.compile(r"Expected `(?P<wanted>[a-z| ]+)`, got `(?P<given>[a-z]+)`")
_MISSING: Final = re.compile(r"Object missing required field `(?P<field>[^`]*)`")
_BOUND: Final = re.compile(r"Expected `[a-z]+` (?P<sign>[<>]=?) (?P<bound>\S+)")
_EMPTY: Final = re.compile(r"Expected `[a-z]+` of length >= 1")
_OTHER_WORD: Final = re.compile(r"Invalid enum value '(?P<word>.*)'", re.DOTALL)
_WANTED: Final = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "an integer",
    "object": "an object",
    "str": "a string",
}
_GIVEN: Final = {"array": "list", "bool": "boolean", "float": "number", "int": "integer", "str": "string"}
_SIGNS: Final = {">=": "greater than or equal to", ">": "greater than", "<=": "less than or equal to", "<": "less than"}


def field_error(error: Exception) -> str:
    """Return a decoding error as `spec.taints[0].key: Invalid value: integer: must be a string`.

    Whoever reads files relies on it: what the decoder calls types never reaches people.
    """
    match = _PROBLEM.fullmatch(str(error))
    assert match is not None
    path = (match["path"] or "").removeprefix("$").removeprefix(".")
    if missing := _MISSING.fullmatch(match["problem"]):
        return f"{child(path, missing['field'])}: Required value"
    problem = _in_kubernetes_words(match["problem"])
    return f"{path}: {'key: ' if match['key'] else ''}{problem}" if path else problem


def _in_kubernetes_words(problem: str) -> str:
    if types := _TYPES.fullmatch(problem):
        # An absent field is as good as null, so nobody need write that.
        wanted = " or ".join(_WANTED.get(each, each) for each in types["wanted"].split(" | ") if each != "null")
        return f"Invalid value: {_GIVEN.get(types['given'], types['given'])}: must be {wanted}"
    if bound := _BOUND.fullmatch(problem):
        return f"must be {_SIGNS[bound['sign']]} {bound['bound']}"
    if _EMPTY.fullmatch(problem):
        return "Required value"
    if other := _OTHER_WORD.fullmatch(problem):
        return f"Unsupported value: {quote(other['word'])}"
    return problem.replace("`", "").replace("\n", " ")
