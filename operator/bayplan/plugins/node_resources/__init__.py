"""What pods take and nodes have (upstream: plugins/noderesources).

- `node_resources_fit`: the filter by requests, and the score by a strategy
- `resource_scoring`: the strategies (LeastAllocated, MostAllocated, RequestedToCapacityRatio) on many rows and on one
- `node_resources_balanced_allocation`: the score by how evenly a node's resources are used, and the one of 1.16
"""
