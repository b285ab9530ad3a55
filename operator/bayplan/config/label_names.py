"""Rules for names of labels and resources, with the API's texts (apimachinery: api/validate/content)."""

import re
from typing import Final

from bayplan.config.errors import FieldError, invalid

_NAME: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_NAME_RULE: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME}')"
)
_VALUE: Final = f"({_NAME})?"
_VALUE_RULE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    f"'{_VALUE}')"
)
_SUBDOMAIN: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_MAX_NAME: Final = 63
_MAX_SUBDOMAIN: Final = 253


def label_key_problems(key: str) -> list[str]:
    """What keeps `key` from being a label key (or qualified name); empty when it is one."""
    parts = key.split("/")
    if len(parts) > 2:
        return [
            f"a valid label key {_NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    problems = []
    if len(parts) == 2:
        if not parts[0]:
            problems.append("prefix part must be non-empty")
        else:
            problems += [f"prefix part {problem}" for problem in _subdomain_problems(parts[0])]
    name = parts[-1]
    if not name:
        problems.append("name part must be non-empty")
    elif len(name.encode()) > _MAX_NAME:
        problems.append(f"name part must be no more than {_MAX_NAME} bytes")
    if not re.fullmatch(_NAME, name[: _MAX_NAME * 4]):
        problems.append(f"name part {_NAME_RULE}")
    return problems


def label_value_problems(value: str) -> list[str]:
    """What keeps `value` from being a label value; empty when it is one."""
    problems = []
    if len(value.encode()) > _MAX_NAME:
        problems.append(f"must be no more than {_MAX_NAME} bytes")
    if not re.fullmatch(_VALUE, value):
        problems.append(_VALUE_RULE)
    return problems


def validate_label_name(name: str, path: str) -> list[FieldError]:
    """One error for each problem of a label key."""
    return [invalid(path, name, problem) for problem in label_key_problems(name)]


def validate_extended_resource_name(name: str, path: str) -> list[FieldError]:
    """Errors unless `name` is one an extender may manage (pkg/apis/core/v1/helper: IsExtendedResourceName)."""
    if errors := validate_label_name(name, path):
        return errors
    native = "/" not in name or "kubernetes.io/" in name
    if native or name.startswith("requests.") or label_key_problems(f"requests.{name}"):
        return [invalid(path, name, "is an invalid extended resource name")]
    return []


def _subdomain_problems(value: str) -> list[str]:
    problems = []
    if len(value.encode()) > _MAX_SUBDOMAIN:
        problems.append(f"must be no more than {_MAX_SUBDOMAIN} bytes")
    # Dots and labels are checked apart: the pattern as a whole backtracks on long names.
    if not all(re.fullmatch(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?", part) for part in value.split(".")):
        problems.append(_SUBDOMAIN_RULE)
    return problems
