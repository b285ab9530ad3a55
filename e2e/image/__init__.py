"""What the Dockerfile makes, assembled and run without a container runtime."""
