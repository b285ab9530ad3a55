"""bayplan: a bin-packing second scheduler for Kubernetes that explains itself."""

__version__ = "0.1.0"
