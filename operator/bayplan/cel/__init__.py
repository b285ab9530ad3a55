"""The expressions of DeviceClasses and ResourceClaims (Common Expression Language), as kube-scheduler evaluates them.

`compile_selector` gives a Selector, and that answers for any number of devices. What is here is pure: the same
expression and device always give the same answer. kube-scheduler's is k8s.io/dynamic-resource-allocation/cel.
"""

from bayplan.cel.errors import CompileError, EvaluationError
from bayplan.cel.quantity import Quantity
from bayplan.cel.selector import Device, Selector, compile_selector, versions

__all__ = ["CompileError", "Device", "EvaluationError", "Quantity", "Selector", "compile_selector", "versions"]
