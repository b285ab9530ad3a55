"""Kubernetes' own scheduling specs, with bayplan as the only scheduler of the cluster."""
