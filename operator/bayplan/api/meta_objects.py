"""What the wire objects of all kinds share: metadata, owners, label selectors and quantities.

Decoding drops what is not listed here and in the modules of the kinds (annotations, environment, managed fields), so
secrets and bulk never stay in memory. Every field has the API's zero value as its default: a sparse object decodes.
Structs are immutable: caches share them freely.
"""

import msgspec

Quantity = str | int | float | None


class Struct(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A wire object: frozen, outside the garbage collector's walks, camelCase on the wire."""


class OwnerReference(Struct, frozen=True):
    """Who owns an object; `controller` marks the one that manages it."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMeta(Struct, frozen=True):
    """The identity, labels and lifecycle stamps of an object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None


class LabelSelectorRequirement(Struct, frozen=True):
    """One expression of a label selector."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class LabelSelector(Struct, frozen=True):
    """A metav1.LabelSelector: labels and expressions, all of which must match."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[LabelSelectorRequirement] | None = None
