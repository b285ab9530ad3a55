"""The handlers of watch events on a real cache and queue, and what they tell."""

from tests.builders import make_node
from tests.scheduler.scene import Handlers

from bayplan.cache.cache import Cache
from bayplan.cache.listers import Listers
from bayplan.framework.status import SUCCESS
from bayplan.queue.queue_settings import QueueProfile, QueueSettings
from bayplan.queue.scheduling_queue import SchedulingQueue
from bayplan.scheduler.event_handlers import ListerEvents


class SpiedQueue(SchedulingQueue):
    """A real queue that remembers what it was told happened."""

    def __init__(self, profiles):
        settings = QueueSettings({name: QueueProfile(lambda _: SUCCESS, {}) for name in profiles})
        super().__init__(clock=lambda: 100.0, settings=settings)
        self.events = []

    def move_all(self, event, old, new):
        self.events.append((event.label, old, new))
        super().move_all(event, old, new)

    def labels(self):
        labels, self.events = [label for label, _, _ in self.events], []
        return labels


class HandlerScene(Handlers):
    """One node, and every handler."""

    def __init__(self, profiles=("bayplan",)):
        self.wakes = 0
        self.gone = []
        self.listers = Listers()
        super().__init__(Cache(), SpiedQueue(profiles), self.gone.append, profiles)
        self.queue.wake = self._wake
        self.nodes.on_add(make_node("a"))
        self.queue.labels()

    def events_of(self, kind):
        return ListerEvents(self.listers.of(kind), kind.__name__, self.queue)

    def _wake(self):
        self.wakes += 1

    def cpu(self, node="a"):
        return int(self.cache.nodes.requested["cpu"][self.cache.nodes.row(node)])
