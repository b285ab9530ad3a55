"""Implement DynamicResources (upstream: pkg/scheduler/framework/plugins/dynamicresources), for all nodes at once.

Read the modules in this order:

1. `dynamic_resources`: the plugin. It turns what is found into statuses, reserves it and names what is to be written.
2. `pod_claims`: which claims a pod has, and why it may not have them yet (claims.go, resourceclaim.go).
3. `cycle_claims`: what is known of them within a cycle; `extended_claim` is the one that stands for extended resources
   which classes provide (extendeddynamicresources.go).
4. `claim_cache`: claims and devices as decisions under way will leave them (dra_manager.go). The devices themselves
   are found by `bayplan.devices`.
5. `claim_writes`: what is written on a claim, and read again after a conflict (bindClaim).
6. `binding_conditions`: whether the devices of a claim are ready (isClaimReadyForBinding).
"""
