"""The running process: kopf as its intake, and the wiring of all parts.

Importing this package imports kopf without the official client: where kopf finds that, it loads all of it for two type
checks nobody here needs, which costs 0.3 s of CPU and 20 MB at every start. The client stays importable afterwards, for
credential plugins.
"""

import sys

if "kubernetes" not in sys.modules:
    sys.modules["kubernetes"] = None  # type: ignore[assignment]  # None makes an import fail as if it were missing
    try:
        import kopf as kopf
    finally:
        del sys.modules["kubernetes"]
