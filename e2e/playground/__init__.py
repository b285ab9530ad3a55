"""A cluster to try bayplan on: a real control plane, pretended nodes, and the production overlay at work."""
