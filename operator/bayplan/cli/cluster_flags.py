"""The flags that say which cluster, as all commands that reach one have them."""

from typing import Final

from bayplan.cli.file_names import FILE_NAME
from bayplan.cli.flag_groups import Flag

KUBECONFIG: Final = Flag(
    "--kubeconfig",
    type=FILE_NAME,
    metavar="FILE",
    help="How to reach the cluster; otherwise $KUBECONFIG, the pod's own account, ~/.kube/config.",
)
CONTEXT: Final = Flag("--context", metavar="NAME", help="The kubeconfig context to use.")
MASTER: Final = Flag("--master", metavar="URL", help="The API server, in place of the one that the kubeconfig names.")
