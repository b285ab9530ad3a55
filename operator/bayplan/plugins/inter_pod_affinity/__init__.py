"""InterPodAffinity: pods that must, must not or prefer to be near others (upstream: plugins/interpodaffinity).

Read in this order:

- `inter_pod_affinity`: the plugin, its messages, and which events may help a pod it rejected
- `filter_and_score`: the rows that required terms rule out, and the weights that preferred terms give
- `terms`: what both count, by topology key and row: pods that the incoming pod's terms match (`IncomingPodTerms`), and
  terms of existing pods that match the incoming pod (`ExistingPodsTerms`)
- `placed_terms`: all terms of all pods on nodes, kept current as pods come and go
"""
