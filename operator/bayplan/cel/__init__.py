"""The expressions of DeviceClasses and ResourceClaims (Common Expression Language), as kube-scheduler evaluates them.

A Selector is one that was compiled, and answers for any number of devices. What is here is pure: the same expression
and device always give the same answer. kube-scheduler's is k8s.io/dynamic-resource-allocation/cel.
"""
