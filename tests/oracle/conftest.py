from functools import cache
from importlib.metadata import entry_points

import pytest

from bayplan.plugins import out_of_tree


@pytest.fixture(autouse=True, scope="module")
def _distributions_searched_once():
    """Every replay makes its frameworks anew; searching all distributions for plugins would take a quarter of that."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(out_of_tree, "entry_points", cache(entry_points))
        yield
