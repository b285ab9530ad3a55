"""PyTorch's CI fleet at its full size: schedulers beside each other on its nodes, with its pods."""
