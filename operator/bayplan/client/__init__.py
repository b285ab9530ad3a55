"""Asks a running scheduler, as a person at a terminal or at a page does; nothing of it runs in the scheduler."""
