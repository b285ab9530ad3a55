"""The running process: kopf as its intake, and the wiring of all parts."""
