"""PodTopologySpread: pods that belong together lie evenly over domains (upstream: plugins/podtopologyspread).

Read in this order:

- `pod_topology_spread`: the plugin
- `constraints`: a pod's constraints, resolved; `defaults` finds the selector of those it has by default
- `domains`: the domains that a constraint divides the nodes into, and the matching pods in each, kept current
- `filter`: DoNotSchedule; `score`: ScheduleAnyway
- `hints`: which events may help a rejected pod
"""
