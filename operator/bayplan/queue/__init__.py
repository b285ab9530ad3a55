"""Which pod is tried next, and which rejected pod is worth another try. State machine: README.md."""
