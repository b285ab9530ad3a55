"""What plugins say where a profile switches off the PreFilter or PreScore whose findings they read."""

from collections.abc import Hashable, Sequence
from typing import ClassVar

import numpy as np

from bayplan.cache.change_log import Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.interface import CycleState, Plugin, Scores
from bayplan.framework.status import Code, Codes, Exchange, Reason, Status, Traits


class StateError(RuntimeError):
    """A plugin lacks what another extension point was to find, which fails the pod's cycle; the text is the user's."""


class WithoutState:
    """Stands for a plugin at the extension points that fail without a PreFilter or PreScore; `text` says of what.

    A profile puts it in the plugin's place, so that plugins need not look for what is there in every other profile.
    The texts around are those of framework/runtime/framework.go.
    """

    name: ClassVar[str]
    traits: ClassVar[Traits] = Traits()

    def __init__(self, plugin: Plugin, text: str) -> None:
        vars(self)["name"] = plugin.name
        self._text = text

    def sign_pod(self, pod: PodInfo) -> Hashable:
        """Nothing of the pod matters."""
        return ()

    def filter(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Codes:
        """ERROR for every row, which fails the cycle if a row passed the filters before."""
        return np.full(len(rows), Code.ERROR, dtype=np.int8)

    def reasons(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Sequence[Reason]:
        """The text."""
        return [Reason(self._text, np.ones(len(rows), dtype=np.bool_))]

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, feasible: Rows) -> Status:
        """Raise StateError."""
        raise StateError(f'running PreScore plugin "{self.name}": {self._text}')

    def score(self, state: CycleState, pod: PodInfo, nodes: NodeTable, rows: Rows) -> Scores:
        """Raise StateError."""
        raise StateError(f'running Score plugins: plugin "{self.name}" failed with: {self._text}')

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """ERROR."""
        return Status(Code.ERROR, (self._text,))

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Nothing was reserved."""

    def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Exchange | None:
        """Raise StateError."""
        raise StateError(f'running PreBind plugin "{self.name}": {self._text}')
