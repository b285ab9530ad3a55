"""Explanations of a decision: why nodes were rejected, what would help, and how the chosen node's score came about.

They are values, read from a decision before its pod is assumed: explanation.py has their types and texts, explain.py
makes them, trace.py has every node's verdict. Nothing is worked out unless somebody asks.
"""
