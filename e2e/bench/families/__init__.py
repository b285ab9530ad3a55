"""scheduler_perf's workload families, run against real schedulers one after the other."""
