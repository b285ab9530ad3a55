"""Answers questions about the running scheduler, on copies of what it knows: nothing it decides by is touched.

What is asked is copied in one go on the event loop, which takes some milliseconds, and worked out on a thread of its
own, one question at a time. answers.py has the shapes, inspector.py answers.
"""
