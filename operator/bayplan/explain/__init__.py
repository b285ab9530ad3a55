"""Explanations of a decision: why nodes were rejected, what would help, and how the chosen node's score came about.

They are values, made by the engine that decides from the answers it has: explanation.py has their types, explain.py
makes them, text.py writes them for people. Nothing is worked out unless somebody asks.
"""
