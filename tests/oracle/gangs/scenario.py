"""What a scenario of gangs is: steps on an API server, with rests at which a scheduler has nothing left to do.

Only the scheduler that plays it says what comes of it; `recording.py` keeps that.
"""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import Any

Object = dict[str, Any]

FIRST, SECOND = "gangs", "more-gangs"
"""The names of the two profiles that every scheduler under comparison has."""
UNKNOWN = "nobody"
"""The name of a scheduler that does not run."""
CLASSES = {"low": 10, "middle": 100, "high": 1000}
"""The PriorityClasses of all scenarios; `never` is one more, of 1000, whose pods preempt nobody."""
NEVER = "never"


@dataclass(frozen=True, slots=True)
class Create:
    """Creates an object; one of a namespaced resource goes to the namespace of the scenario unless it names one."""

    resource: str
    document: Object


@dataclass(frozen=True, slots=True)
class Change:
    """Changes an object, or a subresource of it, by a merge patch."""

    resource: str
    name: str
    change: Object
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class Delete:
    """Deletes an object at once; `finalizers` are taken off where it says so, as a controller does."""

    resource: str
    name: str
    finalizers: bool = False


@dataclass(frozen=True, slots=True)
class Bind:
    """Binds a pod as somebody else than the scheduler."""

    pod: str
    node: str


@dataclass(frozen=True, slots=True)
class Rest:
    """Waits until nothing changes any more, and takes down what there is."""


Step = Create | Change | Delete | Bind | Rest


@dataclass(frozen=True, slots=True)
class Scenario:
    """A cluster that starts empty; `about` says what it shows, and the last step is a rest.

    With `places` the nodes of the bound pods are told by the rules alone, and compared.
    """

    name: str
    about: str
    steps: tuple[Step, ...]
    places: bool = False

    def digest(self) -> str:
        """Returns a few letters that change with the steps, so that a recording of other steps is found out."""
        steps = [[type(step).__name__, asdict(step)] for step in self.steps]
        return hashlib.sha256(json.dumps(steps, sort_keys=True).encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Family:
    """Scenarios of one subject, under the feature gates they need besides GenericWorkload."""

    name: str
    about: str
    scenarios: tuple[Scenario, ...]
    gates: tuple[str, ...] = field(default=())
