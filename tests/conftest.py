import os

from hypothesis import settings

# The machine may be busy, so no deadline; in CI every run tries the same cases.
settings.register_profile("bayplan", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("bayplan")
