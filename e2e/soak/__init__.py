"""An hour of everything at once: pods come and go, make room for each other, change, and the API server restarts."""
