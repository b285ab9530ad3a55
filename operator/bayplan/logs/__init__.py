"""What is written to the log: levels by kube-scheduler's `-v`, two formats, and a writer that holds nobody up."""
