"""A copy of the node table on which pods can be added and removed without changing the real one."""

from collections.abc import Iterable
from typing import Final

from bayplan.cache.change_log import KEPT_POD_BYTES, ChangeLog, PodLog, RowFollower, Rows
from bayplan.cache.node_table import NodeTable
from bayplan.cache.pod_info import PodInfo

KEPT_SCRATCH_POD_BYTES: Final = KEPT_POD_BYTES // 8
"""What `pods_changed` of a table beside the real one keeps at least: there are six of them, or more that share this."""

_USAGE = ("non_zero_cpu", "non_zero_memory", "pod_count")


class ScratchTable(NodeTable):
    """The nodes of `source` in the same rows, with usage of its own; preemption and nominations rely on it.

    What is known of node objects is shared with `source`, what pods take is copied and may be changed here: `source`
    and its logs never notice. `follow` takes over what changed in `source`, `restore` undoes changes made here. Its
    `usage_changed` and `pods_changed` log both, so plugins may keep counts of it as they do of the real table.
    """

    def __init__(self, source: NodeTable) -> None:
        super().__init__()
        self.source = source
        self._source_rows = RowFollower(source)
        self.objects_changed = source.objects_changed
        self.names, self.nodes = source.names, source.nodes
        self.allocatable = source.allocatable
        # Nobody asks which nodes of this table are in use.
        self.staying = {}
        self._row_of = source._row_of  # noqa: SLF001 - rows and names are the source's
        self._held_by_all = source._held_by_all  # noqa: SLF001 - and so are amounts of nodes
        self.layout = -1
        self.pods_changed = PodLog(KEPT_SCRATCH_POD_BYTES)
        self.gone: dict[int, dict[str, PodInfo]] = {}
        """The pods of the source that were taken off here, by row and UID."""
        self.come: dict[int, dict[str, PodInfo]] = {}
        """The pods that were added here and are not in the source, by row and UID."""
        self.moves = 0
        """Grows whenever `gone` or `come` changes."""

    def follow(self) -> Rows | None:
        """Take over what changed in the source since the last call: the rows, or None when it was everything."""
        source = self.source
        change = self._source_rows.follow()
        self.node_count = source.node_count
        if change.everything or self.requested.keys() != source.requested.keys():
            self._copy_all()
            return None
        self.restore(change.usage)
        return change.usage

    def restore(self, rows: Rows) -> None:
        """Make `rows` as they are in the source."""
        self.restore_columns(rows)
        self.clamped_rows.difference_update(rows.tolist())
        self.clamped_rows |= self.source.clamped_rows.intersection(rows.tolist())
        for row in rows.tolist():
            self._restore_pods(row)
            self.usage_changed.append(row)

    def _restore_pods(self, row: int) -> None:
        gone, come = self.gone.pop(row, None), self.come.pop(row, None)
        if gone or come:
            self.moves += 1
        mine, theirs = self.pods[row], self.source.pods[row]
        if mine == theirs:
            return
        for uid, pod in mine.items():
            now = theirs.get(uid)
            if now is not pod:
                self.pods_changed.append((row, pod, now))
        for uid, pod in theirs.items():
            if uid not in mine:
                self.pods_changed.append((row, None, pod))
        self.pods[row] = dict(theirs)

    def restore_columns(self, rows: Rows) -> None:
        """As `restore`, for callers that changed nothing but columns: pods are left alone and nothing is logged."""
        if not len(rows):
            return
        source = self.source
        for name, column in self.requested.items():
            column[rows] = source.requested[name][rows]
        for attribute in _USAGE:
            getattr(self, attribute)[rows] = getattr(source, attribute)[rows]

    def place(self, pods: Iterable[PodInfo], row: int) -> None:
        """Count `pods` on an existing row; whoever is there already is not counted twice."""
        for pod in pods:
            if pod.uid not in self.pods[row]:
                self.add_pod(pod, row)

    def add_pod(self, pod: PodInfo, row: int) -> None:
        """As in NodeTable."""
        super().add_pod(pod, row)
        self._move(pod, row, self.gone, self.come)

    def remove_pod(self, pod: PodInfo, row: int) -> None:
        """As in NodeTable."""
        super().remove_pod(pod, row)
        self._move(pod, row, self.come, self.gone)

    def _move(
        self, pod: PodInfo, row: int, back_from: dict[int, dict[str, PodInfo]], to: dict[int, dict[str, PodInfo]]
    ) -> None:
        if back_from.get(row, {}).pop(pod.uid, None) is None:
            to.setdefault(row, {})[pod.uid] = pod
        self.moves += 1

    def _copy_all(self) -> None:
        source = self.source
        self.gone, self.come = {}, {}
        self.moves += 1
        self.capacity = source.capacity
        # A reader that saw only part of what is replaced here must start over, whatever the logs say.
        self.layout += 1
        self.usage_changed = ChangeLog()
        self.pods_changed.forget_until(self.pods_changed.position)
        self.exists, self.allowed_pods = source.exists, source.allowed_pods
        self.requested = {name: column.copy() for name, column in source.requested.items()}
        for attribute in _USAGE:
            setattr(self, attribute, getattr(source, attribute).copy())
        self.pods = [dict(on_row) for on_row in source.pods]
        self.clamped_rows = set(source.clamped_rows)
