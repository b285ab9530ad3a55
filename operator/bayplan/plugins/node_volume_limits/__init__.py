"""Implement NodeVolumeLimits (upstream: pkg/scheduler/framework/plugins/nodevolumelimits/csi.go).

- `node_volume_limits`: the plugin; it compares counts with the limits of CSINodes.
- `attachable_volumes`: the CSI volumes that a pod or a claim stands for.
- `volume_counts`: how many volumes of each driver every node has, kept current.
"""
