"""TopologyPlacementGenerator, and how it tells the sets of nodes apart."""
