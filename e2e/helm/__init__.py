"""The real Helm, built from Go modules, and what it makes of the chart."""
