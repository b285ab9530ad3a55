"""The read-only page of `bayplan web`: one person's own server on loopback, and what the page is told.

A source answers as the API of a running scheduler does: sources.py has those of files and of a scheduler that runs.
serve.py has the routes and says who may ask, updates.py tells the page what changed. `static/` is the page.
"""
