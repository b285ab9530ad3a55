"""Why claims cannot be allocated on a node, with upstream's texts."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the claims cannot be allocated on a node; the allocator answers with it, and the plugin tells it.

    One that `fails` ends the attempt where no other filter rejects the node: nobody knows whether it has the devices,
    because the search had no time left (`timed_out`) or because the claims, or what they name, allow of no answer.
    """

    text: str
    fails: bool = False
    timed_out: bool = False


NOT_ALL: Final = Refusal("cannot allocate all claims")
INVALID: Final = Refusal("invalid resource pools were encountered")
TIMED_OUT: Final = Refusal("timed out trying to allocate devices", fails=True, timed_out=True)
