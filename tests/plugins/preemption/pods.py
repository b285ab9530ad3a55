"""Pods that preempt and pods that make room."""

from tests.builders import make_pod


def low(name, node="n1", **fields):
    return make_pod(name, uid=name, node=node, **{"cpu": "2", "priority": 1, **fields})


def high(name="high", **fields):
    return make_pod(name, uid=name, **{"cpu": "3", "priority": 10, **fields})


def minute(number):
    return f"2026-01-01T00:{number:02}:00Z"
