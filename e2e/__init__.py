"""End-to-end scenarios and benchmarks against a real control plane."""
