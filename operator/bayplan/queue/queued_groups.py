"""Where each member of a pod group waits in the queue (upstream: backend/queue/workload_forest.go)."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from bayplan.cache.group_members import PodGroupKey
from bayplan.cache.pod_info import PodInfo
from bayplan.framework.cluster_event import ASSIGNED_POD_ADD, ASSIGNED_POD_DELETE, UNSCHEDULED_POD_ADD, ClusterEvent
from bayplan.groups.pod_groups import PodGroup, PodGroups
from bayplan.queue.queue_settings import QueueProfile
from bayplan.queue.queued_pod import QueuedEntity, QueuedPodInfo, SubQueue
from bayplan.queue.queued_pod_group import GANG_SCHEDULING, PreemptingGroups, QueuedPodGroup
from bayplan.queue.sub_queues import SubQueues

_GROUP_CHANGE: Final = "PodGroupChange"
_BACKING_OFF: Final = (SubQueue.BACKOFF, SubQueue.ERROR_BACKOFF)


@dataclass(slots=True, eq=False)
class QueuedGroups:
    """Keeps each waiting member in one place; the queue alone relies on it.

    A member is in the entity of its group, or among those whose group is not known. Members that are tried or bound
    are in flight, one by one, and in none of these.
    """

    groups: PodGroups
    sub_queues: SubQueues
    fail: Callable[[QueuedEntity, bool], None]
    next_sequence: Callable[[], int]
    _entities: dict[PodGroupKey, QueuedPodGroup] = field(default_factory=dict, init=False)
    _incomplete: dict[PodGroupKey, dict[str, QueuedPodInfo]] = field(default_factory=dict, init=False)
    _key_of: dict[str, PodGroupKey] = field(default_factory=dict, init=False)
    preempting: PreemptingGroups = field(init=False)

    def __post_init__(self) -> None:
        self.preempting = PreemptingGroups(self._preempted)

    def __contains__(self, uid: str) -> bool:
        return uid in self._key_of

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        """Give the members that wait."""
        return (queued for uid in self._key_of if (queued := self.get(uid)) is not None)

    def key_of(self, pod: PodInfo) -> PodGroupKey | None:
        """Return the group that the pod is a member of; None for an ordinary pod."""
        return self.groups.of(pod)

    def get(self, uid: str) -> QueuedPodInfo | None:
        """Return a member that waits, which shows where its group stands."""
        key = self._key_of.get(uid)
        if key is None:
            return None
        entity = self._entities.get(key)
        if entity is None:
            member = self._incomplete[key][uid]
            text = f'waiting for pods\'s pod group "{key.name}" to appear in scheduling queue'
            member.sub_queue, member.gating_plugin, member.gating_message = SubQueue.GATED, GANG_SCHEDULING, text
            return member
        member = (entity.late if entity.in_round else entity.members)[uid]
        member.sub_queue, member.backs_off_until = entity.sub_queue, entity.backs_off_until
        member.gating_plugin, member.gating_message = entity.gating_plugin, entity.gating_message
        if uid in entity.gated:
            member.gating_message = entity.gated[uid].message
        return member

    def pending(self) -> Counter[str]:
        """Return how many members wait by where they do, beyond one for each group that stands in a sub-queue."""
        found = Counter(gated=sum(map(len, self._incomplete.values())))
        for entity in self._entities.values():
            if entity.sub_queue is None:
                found["active"] += len(entity.late)
            else:
                found[entity.sub_queue.label] += len(entity.members) - 1
        return found

    def standing(self) -> Counter[str]:
        """Return how many groups stand in each sub-queue, under the labels of scheduler_queued_entities."""
        return Counter(each.sub_queue.label for each in self._entities.values() if each.sub_queue is not None)

    def back_off_until(self) -> float | None:
        """Return when the back-off of all groups is over; None while none backs off."""
        ends = (each.backs_off_until for each in self._entities.values() if each.sub_queue in _BACKING_OFF)
        return max((each for each in ends if each is not None), default=None)

    def oldest_age(self) -> float:
        """Return since how many seconds the gang is tried that waits longest for room; 0 without any."""
        since = (each.short_since for each in self._entities.values())
        oldest = min((each for each in since if each is not None), default=None)
        return 0.0 if oldest is None else self.sub_queues.clock() - oldest

    # Members come and go.

    def add(self, queued: QueuedPodInfo, key: PodGroupKey, *, failed: bool = False) -> None:
        """Take in a member that is in no sub-queue; a group of its own backs off as it would, if its bind `failed`."""
        self._key_of[queued.uid] = key
        entity = self._entities.get(key)
        group = self.groups.get(key)
        if entity is not None and entity.in_round:
            entity.late[queued.uid] = queued
        elif entity is not None:
            self._join(entity, queued)
        elif group is None:
            self._incomplete.setdefault(key, {})[queued.uid] = queued
        else:
            entity = self._open(group, queued)
            if failed:
                entity.consecutive_errors = queued.consecutive_errors
                entity.backs_off_until = queued.backs_off_until
            self._join(entity, queued)

    def update(self, member: QueuedPodInfo, new: PodInfo) -> None:
        """Replace the object of a member that waits; its label may name another group now, or none."""
        key = self.key_of(new)
        if key != self._key_of[new.uid]:
            self.discard(new.uid)
            member.pod_info = new
            self.enter(member, key)
            return
        member.pod_info = new
        entity = self._entities.get(key) if key is not None else None
        if entity is None or entity.in_round:
            return
        if new.is_terminating:
            # Without it there may be too few, which its gate finds when it is gone; or the others have its room.
            if entity.sub_queue is SubQueue.UNSCHEDULABLE:
                self.sub_queues.try_soon(entity)
            else:
                entity.news_seen = None
            return
        was_gated = entity.sub_queue is SubQueue.GATED
        self._take_in(entity, member)
        if was_gated or entity.gated:
            self._requeue(entity)

    def wake(self, uid: str) -> None:
        """Have the group of a member that waits tried again: that was changed in a way that may help."""
        key = self._key_of.get(uid)
        entity = None if key is None else self._entities.get(key)
        if entity is not None and not entity.in_round:
            self._requeue(entity)

    def enter(self, queued: QueuedPodInfo, key: PodGroupKey | None) -> None:
        """Have a pod that stands nowhere wait as a member of this group, or as an ordinary pod."""
        queued.sub_queue = queued.gating_plugin = queued.gating_message = None
        if key is None:
            self.sub_queues.requeue(queued, UNSCHEDULED_POD_ADD.label)
        else:
            self.add(queued, key)

    def regroup(self, pods: Iterable[QueuedPodInfo]) -> None:
        """Have those of these waiting pods be members whose kind of group is served by now."""
        for queued in pods:
            key = self.key_of(queued.pod_info)
            if key is not None and queued.uid not in self:
                self.sub_queues.leave(queued)
                self.enter(queued, key)

    def discard(self, uid: str) -> None:
        """Let go of a member that waits; its group's gate is asked again, and it leaves with its last member."""
        key = self._key_of.pop(uid, None)
        if key is None:
            return
        entity = self._entities.get(key)
        if entity is None:
            del self._incomplete[key][uid]
            if not self._incomplete[key]:
                del self._incomplete[key]
        elif entity.in_round:
            del entity.late[uid]
        else:
            member = entity.members.pop(uid)
            entity.gated.pop(uid, None)
            if entity.members:
                if entity.lead == uid:
                    entity.rank(member.pod_info.priority)
                self._requeue(entity)
            else:
                self._close(entity)

    def _open(self, group: PodGroup, first: QueuedPodInfo) -> QueuedPodGroup:
        entity = QueuedPodGroup(
            first.pod_info,
            first.timestamp,
            first.sequence,
            group=group,
            placed=self.groups.placed,
            preempting=self.preempting,
        )
        self._entities[group.key] = entity
        return entity

    def _close(self, entity: QueuedPodGroup) -> None:
        if entity.sub_queue is not None:
            self.sub_queues.leave(entity)
        del self._entities[entity.group.key]
        self.preempting.forget(entity.group.key)

    def _join(self, entity: QueuedPodGroup, queued: QueuedPodInfo) -> None:
        """Have a new member wait in the entity."""
        self._take_in(entity, queued)
        self._requeue(entity)

    def _take_in(self, entity: QueuedPodGroup, queued: QueuedPodInfo) -> None:
        """Put a new member, or the new version of one, in the entity."""
        entity.members[queued.uid] = queued
        entity.ask(queued, self.sub_queues.settings.profiles)
        if entity.lead == queued.uid or queued.pod_info.priority > entity.members[entity.lead].pod_info.priority:
            entity.stand(queued.pod_info)

    def _requeue(self, entity: QueuedPodGroup, event: str = UNSCHEDULED_POD_ADD.label) -> None:
        # Of the group itself something is another: that is news to it alone.
        entity.news_seen = None
        self.sub_queues.requeue(entity, event)

    # Groups come and go.

    def set_group(self, group: PodGroup) -> None:
        """Follow a group that is new or changed: its members wait as it says from now on, but for a round under way.

        One of which only the condition is another, as we write it ourselves, is not tried again for that.
        """
        entity = self._entities.get(group.key)
        members = self._incomplete.pop(group.key, {})
        if entity is None and members:
            entity = self._open(group, next(iter(members.values())))
        if entity is not None and not entity.in_round:
            is_same = not members and replace(group, condition=entity.group.condition) == entity.group
            entity.group = group
            if not is_same:
                self._fill(entity, members)

    def remove_group(self, key: PodGroupKey) -> None:
        """Have members wait for another group of that name."""
        entity = self._entities.get(key)
        if entity is not None and not entity.in_round:
            self._close(entity)
            self._incomplete[key] = entity.members

    def observe(self, event: ClusterEvent, old: object | None, new: object | None) -> None:
        """Ask gates again that pods on nodes may open, which come, or end."""
        if event is ASSIGNED_POD_ADD and isinstance(new, PodInfo):
            self._member_placed(new)
        elif event is ASSIGNED_POD_DELETE and isinstance(old, PodInfo):
            self.preempting.victim_gone(old.uid)

    def _member_placed(self, pod: PodInfo) -> None:
        key = self.key_of(pod)
        entity = None if key is None else self._entities.get(key)
        if entity is not None and entity.sub_queue is SubQueue.GATED:
            self._requeue(entity, _GROUP_CHANGE)

    def _preempted(self, key: PodGroupKey, at_once: bool) -> None:
        """Let a group go on that its preemption held, `at_once` if it backs off no longer."""
        entity = self._entities.get(key)
        if entity is not None and not entity.in_round and (at_once or entity.sub_queue is SubQueue.GATED):
            if at_once:
                entity.backs_off_until = None
            self._requeue(entity, _GROUP_CHANGE)

    def take_over(self, profiles: Mapping[str, QueueProfile]) -> None:
        """Ask the gates of all members again, as profiles changed; the caller requeues the groups."""
        for entity in self._entities.values():
            for member in entity.members.values() if not entity.in_round else ():
                entity.ask(member, profiles)

    def _fill(self, entity: QueuedPodGroup, members: dict[str, QueuedPodInfo]) -> None:
        entity.members.update(members)
        for member in members.values():
            entity.ask(member, self.sub_queues.settings.profiles)
        entity.rank()
        self._requeue(entity, _GROUP_CHANGE)

    # Rounds.

    def begin_round(self, entity: QueuedPodGroup) -> None:
        """Sort the members of a group that was popped; each of them is the caller's until it is handed back."""
        ranked = sorted(entity.members.values(), key=_rank)
        entity.members = {each.uid: each for each in ranked}
        entity.gated.clear()
        entity.in_round, entity.news_seen = True, self.sub_queues.backoff.last_news
        entity.tried = {each.uid: each.pod_info for each in ranked}
        for member in ranked:
            del self._key_of[member.uid]
            member.sub_queue = member.gating_plugin = member.gating_message = None
            member.attempts += 1
            if member.initial_attempt_timestamp is None:
                member.initial_attempt_timestamp = max(entity.initial_attempt_timestamp or 0.0, member.timestamp)

    def finish_round(self, entity: QueuedPodGroup, *, failed: bool, error: bool, waits: bool, event: str) -> None:
        """Put the group back with the members that were handed back or came since (upstream: AddAttemptedPodGroup...).

        After a round that placed it, members that are left are tried at once. After another one it backs off, whatever
        happens, and if it `waits` then until there are news, unless group or members are not as they were tried.
        """
        key, members = entity.group.key, entity.late
        entity.members, entity.late, entity.in_round = {}, {}, False
        group = self.groups.get(key)
        if not members or group is None:
            self._close(entity)
            if members:
                self._incomplete[key] = members
            return
        tried, entity.tried = entity.tried, {}
        # One that went may have held the room of those that are left.
        is_same = group is entity.group and tried == {uid: each.pod_info for uid, each in members.items()}
        if not (waits and failed and is_same):
            entity.news_seen = None
        entity.group = group
        if failed:
            self.fail(entity, not error)
        else:
            entity.attempts = entity.unschedulable_count = entity.consecutive_errors = 0
            entity.backs_off_until = entity.initial_attempt_timestamp = None
            if not any(each.attempts for each in members.values()):
                entity.timestamp, entity.sequence = self.sub_queues.clock(), self.next_sequence()
        for member in members.values():
            entity.ask(member, self.sub_queues.settings.profiles)
        entity.members = members
        entity.rank()
        self.sub_queues.requeue(entity, event)


def _rank(member: QueuedPodInfo) -> tuple[int, int, float, str]:
    """Return the order in which members are tried."""
    return (-member.pod_info.priority, -member.attempts, member.timestamp, member.pod_info.name)
