"""Implement NodeVolumeLimits (upstream: pkg/scheduler/framework/plugins/nodevolumelimits/csi.go).

- `node_volume_limits`: the plugin; it compares counts of the volumes that pods stand for with the limits of CSINodes.
- `volume_counts`: how many volumes of each driver every node has, kept current.
"""
