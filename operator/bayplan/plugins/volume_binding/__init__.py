"""Implement VolumeBinding (upstream: pkg/scheduler/framework/plugins/volumebinding), for all nodes at once.

Read the modules in this order:

1. `volume_binding`: the plugin. It turns the binder's findings into statuses, reserves them and writes them, and
   names the cluster events after which a rejected pod is tried again.
2. `binder`: sorts a pod's claims by what is left to do, and finds on which nodes it can be done (binder.go).
3. `matching`: picks for each claim and each node the smallest free volume that fits (FindMatchingVolume).
4. `class_volumes`: what a claim asks of a volume, and the volumes of a storage class as columns, so that a claim is
   compared with all in one step.
5. `node_topology`: tells which nodes a volume, a storage class or a capacity can be used on.
6. `capacity`: keeps CSIStorageCapacity objects as the largest volume that each node has space for.
7. `assume_cache`: shows claims and volumes as decisions under way will leave them (passive_assume_cache.go).
8. `scorer`: how full storage would be, as a score (scorer.go).
9. `pod_volumes`: what is bound for one pod on its node: assumed, written, and checked until it is done.

A slot is a volume's number within its class; a row is a node's number in the node table. A position is an index into
the rows that a call asks about. Sizes of claims and volumes are in thousandths of a byte.
"""
