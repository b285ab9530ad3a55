"""Hold what several volume plugins know of claims, volumes and CSINodes.

- `claims`: the claims of a pod, and the rules and messages about claims that all plugins share.
- `csi_migration`: in-tree volumes in the words of the CSI drivers that succeeded them.
- `csi_nodes`: attach limits and migrated in-tree plugins as columns over the nodes.
"""
