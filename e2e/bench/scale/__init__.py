"""Clusters and queues of a size that few have, and pods that come faster than most do."""
