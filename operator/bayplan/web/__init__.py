"""The read-only page of `bayplan web`: one person's own server on loopback, and what the page is told.

A source answers as the API of a running scheduler does: snapshot.py from files, remote.py from a scheduler that runs.
guard.py says who may ask, updates.py tells the page what changed, pages.py has the routes. `static/` is the page.
"""
