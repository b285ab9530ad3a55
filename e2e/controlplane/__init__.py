"""A real Kubernetes control plane on loopback ports, for tests and benchmarks."""
