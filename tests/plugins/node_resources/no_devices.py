"""For plugins that count devices, in tests without any."""

from bayplan.cache.listers import Listers
from bayplan.cache.node_index import NodeIndex
from bayplan.cache.node_table import NodeTable
from bayplan.plugins.node_resources.device_amounts import DeviceAmounts

_NODES = NodeTable()
NO_DEVICES = DeviceAmounts(Listers(), _NODES, NodeIndex(_NODES))
