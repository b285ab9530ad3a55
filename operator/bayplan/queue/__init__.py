"""Which pod is tried next, and which rejected pod is worth another try (upstream: pkg/scheduler/backend/queue).

README.md draws the states and names the rules. Read in this order:

- `scheduling_queue`: the interface that the scheduling loop and the event handlers call
- `sub_queues`: where each pod stands, every move, and what time alone moves; `keyed_heap` and `unschedulable_pods` hold
  the pods, `queued_pod` is a pod with its history and its back-off
- `queueing_hints`: whether an event helps a rejected pod, and which events an update of a pod is
- `in_flight`: popped pods, and the events they missed
- `queue_profile`: what the queue needs of a profile
- `nominator`: pods that wait for room on a node; not a part of the queue itself
"""
