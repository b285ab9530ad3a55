"""Which pod is tried next, and which rejected pod is worth another try (upstream: pkg/scheduler/backend/queue).

README.md lists the modules, draws the states and names the rules; begin with `scheduling_queue`.
"""
