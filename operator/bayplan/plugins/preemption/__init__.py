"""DefaultPreemption: who may preempt, whom, on which node, and at what price (upstream: framework/preemption).

Read in this order:

- `default_preemption`: the plugin, and whether a pod may preempt at all
- `dry_run`: goes through the nodes until there are enough candidates; on one node it selects victims pod by pod
- `on_columns`: selects the same on many nodes at once, for filters that read columns only, and keeps what it found for
  the next pod of that kind
- `victims`: who may be a victim and what that makes free on each node, who violates a budget, and who is spared first,
  for a pod and for a group
"""
