"""Ninety-seven inputs that nobody means well with, as one table: what the API server says, and what becomes of each."""
