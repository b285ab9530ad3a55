"""PodTopologySpread: pods that belong together lie evenly over domains (upstream: plugins/podtopologyspread).

Read in this order:

- `pod_topology_spread`: the plugin, and which events may help a pod it rejected
- `constraints`: a pod's constraints, resolved, and what those count that it has by default
- `domains`: the domains that a constraint divides the nodes into, and the matching pods in each, kept current
- `filter_and_score`: DoNotSchedule and ScheduleAnyway
"""
