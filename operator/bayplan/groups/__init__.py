"""Pod groups: what their objects say, whichever of the two kinds they are, and which are known."""
