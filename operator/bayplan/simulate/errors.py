"""What is wrong with the files a simulation is given."""


class ClusterFileError(ValueError):
    """A cluster file that cannot be used; its one-line text names file, document, object and field.

    The commands print it and exit with 2.
    """
