"""Whether what the scheduler holds is what the API server has (upstream: backend/cache/debugger)."""
