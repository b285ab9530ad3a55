"""What a scheduler that is not to be trusted might say of its queue."""

import json

from bayplan.client.scheduler_client import SchedulerClient

TEXTS = ("namespace", "name", "queue", "waitingSince", "nextRetry", "message", "group", "nominatedNode")


def queue_full_of(text):
    """An answer for SchedulerClient.queue_page: one pod, with `text` in each of its fields that holds some."""
    item = {"schedulerName": "bayplan", "priority": 0, "position": None, "attempts": 1, "rejectedBy": [text]}
    answer = {"time": text, "total": 1, "items": [item | dict.fromkeys(TEXTS, text)], "continue": None}

    async def queue_page(self: SchedulerClient, start, limit):
        return json.dumps(answer).encode()

    return queue_page
