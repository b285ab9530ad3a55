"""The manifests and a scheduler with their identity on each API server that is served."""
