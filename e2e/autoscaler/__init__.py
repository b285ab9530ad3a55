"""A trace of pods on a real API server with Karpenter as the autoscaler, for each scheduler in turn."""
