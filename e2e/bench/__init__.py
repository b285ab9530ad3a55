"""The paired benchmark: bayplan and kube-scheduler on one control plane, one after the other."""
