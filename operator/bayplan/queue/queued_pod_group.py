"""A pod group on its way through the queue, and what holds it there (upstream: backend/queue/workload_forest.go)."""

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from msgspec import structs

from bayplan.cache.group_members import PodGroupKey
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.status import SUCCESS, Code, Status
from bayplan.groups.pod_groups import PodGroup
from bayplan.queue.queue_settings import QueueProfile
from bayplan.queue.queued_pod import QueuedEntity, QueuedPodInfo

GANG_SCHEDULING: Final = "GangScheduling"
_TOO_FEW: Final = "waiting for minCount pods from a gang to appear in scheduling queue"
_DEFAULT_PREEMPTION: Final = "DefaultPreemption"
_PREEMPTING: Final = "waiting for the preemption for this pod group to be finished"


@dataclass(slots=True, eq=False, repr=False)
class QueuedPodGroup(QueuedEntity):
    """A pod group of which members wait; they are tried together, in one round.

    `pod_info` is its most important member's, at the group's priority. `members` are by UID, and in the order in which
    the round tries them once it was popped. While it is `in_round`, members that come or fail are `late`, and those of
    the round are `tried` as they were. `gated` are the members that a plugin of their profile holds: one of them holds
    the group.
    """

    group: PodGroup = field(kw_only=True)
    placed: Callable[[PodGroupKey], Mapping[str, PodInfo]] = field(kw_only=True)
    members: dict[str, QueuedPodInfo] = field(default_factory=dict)
    late: dict[str, QueuedPodInfo] = field(default_factory=dict)
    tried: dict[str, PodInfo] = field(default_factory=dict)
    gated: dict[str, Status] = field(default_factory=dict)
    preempting: Container[PodGroupKey] = ()
    in_round: bool = False
    lead: str = field(default="", init=False)

    def __post_init__(self) -> None:
        # No pod's UID: these come from the API server, or from a file.
        self.uid = f"\0{self.group.key.source} {self.group.key}"
        self.profile = self.pod_info.pod.spec.scheduler_name
        self.stand(self.pod_info)

    @property
    def since(self) -> float:
        """Since ever for a gang that runs in part, as after a restart: room goes to whom it makes whole."""
        return 0.0 if 0 < len(self.placed(self.group.key)) < self.group.least else self.timestamp

    @property
    def short_since(self) -> float | None:
        """When it was first tried, of a gang that is not whole yet and waits for nothing but room; else None."""
        is_held = self.gating_plugin not in {None, _DEFAULT_PREEMPTION}
        is_whole = len(self.placed(self.group.key)) >= self.group.least
        return None if is_held or is_whole else self.initial_attempt_timestamp

    def is_of(self, profiles: Container[str]) -> bool:
        """Whether one of these profiles decides on a member."""
        return any(each.profile in profiles for each in self.members.values())

    def gate(self, profiles: Mapping[str, QueueProfile]) -> Status:
        """Return what holds the group: a gated member, which is named, or that there are too few.

        So does its preemption while victims are being told to end. Upstream: gangscheduling.go PreEnqueue and
        default_preemption.go PreEnqueue.
        """
        if self.group.key in self.preempting:
            return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (_PREEMPTING,), _DEFAULT_PREEMPTION)
        while self.gated:
            uid = next(iter(self.gated))
            self.ask(self.members[uid], profiles)
            if uid in self.gated:
                held = self.gated[uid]
                text = f'waiting for pod "{self.members[uid].pod_info.name}" of the pod group: {held.message}'
                return Status(held.code, (text,), held.plugin)
        if len(self.members) + len(self.placed(self.group.key)) < self.group.least:
            return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (_TOO_FEW,), GANG_SCHEDULING)
        return SUCCESS

    def ask(self, member: QueuedPodInfo, profiles: Mapping[str, QueueProfile]) -> None:
        """Ask again whether a plugin holds the member."""
        status = profiles[member.profile].gate(member.pod_info)
        if status.ok:
            self.gated.pop(member.uid, None)
        else:
            self.gated[member.uid] = status

    def rank(self, most: int | None = None) -> None:
        """Have the most important member stand for the group; none is of a higher priority than `most`."""
        pods = (each.pod_info for each in self.members.values())
        lead = next((each for each in pods if each.priority == most), None)
        self.stand(lead or max((each.pod_info for each in self.members.values()), key=lambda pod: pod.priority))

    def stand(self, lead: PodInfo) -> None:
        """Have this member stand for the group, at the group's priority."""
        priority, self.lead = self.group.priority, lead.uid
        if priority is not None and priority != lead.priority:
            spec = structs.replace(lead.pod.spec, priority=priority)
            lead = PodInfo(structs.replace(lead.pod, spec=spec))
        self.pod_info = lead


@dataclass(slots=True, eq=False)
class PreemptingGroups:
    """Holds groups while their victims are being told to end, and has them tried at once when the last one is gone.

    Gates of groups rely on it, and so does whoever ends victims. `go_on` asks the gate of a group again, at once if
    told so.
    """

    go_on: Callable[[PodGroupKey, bool], None]
    _held: set[PodGroupKey] = field(default_factory=set, init=False)
    _victims: dict[PodGroupKey, set[str]] = field(default_factory=dict, init=False)

    def __contains__(self, key: object) -> bool:
        """Whether the group is held (upstream: preemption/executor.go IsPodGroupRunningPreemption)."""
        return key in self._held

    def begin(self, key: PodGroupKey, victims: Iterable[str]) -> None:
        """Hold a group, whose round is not finished yet, until `end`; victims are given by UID."""
        self._held.add(key)
        self._victims[key] = set(victims)

    def end(self, key: PodGroupKey) -> None:
        """Let a group back off whose victims were told to end, or will not end after all."""
        self._held.discard(key)
        self.go_on(key, False)

    def victim_gone(self, uid: str) -> None:
        """Have a group tried at once whose last victim is gone."""
        for key in [each for each, victims in self._victims.items() if uid in victims]:
            self._victims[key].discard(uid)
            if not self._victims[key]:
                del self._victims[key]
                self.go_on(key, True)

    def forget(self, key: PodGroupKey) -> None:
        """Wait for no victim of a group any more of which nobody waits."""
        self._victims.pop(key, None)
