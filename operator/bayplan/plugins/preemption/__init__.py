"""DefaultPreemption: who may preempt, whom, on which node, and at what price (upstream: framework/preemption).

Read in this order:

- `default_preemption`: the plugin; `eligibility` decides whether a pod may preempt at all
- `dry_run`: goes through the nodes until there are enough candidates
- `one_node`: selects the victims on one node, pod by pod, with any filters
- `on_columns`: selects the same on many nodes at once, for filters that read columns only; `kept_selections` keeps what
  it found for the next pod of that kind
- `victims`: who may be a victim, in what order they are spared, and what was found on a node
- `lower_priority`: the possible victims on each node and what they take, kept as columns
- `budgets`: which victims would violate a disruption budget
"""
