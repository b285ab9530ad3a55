"""Notices that the API server tells of an earlier time than it did before."""

from bayplan.api.meta_objects import is_later_version


class VersionHistory:
    """The latest resourceVersion that was seen of one kind.

    Versions of consistent lists never go back, unless etcd was restored from a backup: everything known since then is
    of a history that did not happen. Reflector and IntakeList rely on it.
    """

    def __init__(self) -> None:
        self._latest = ""

    def seen(self, version: str) -> None:
        """Take the version of a list or an event; "" says nothing."""
        self._latest = version or self._latest

    def went_back(self, version: str) -> bool:
        """Take the version of a consistent list, and return whether a later one was seen before.

        Versions that are no decimal numbers have no order, and never went back.
        """
        latest, self._latest = self._latest, version
        return latest.isdecimal() and version.isdecimal() and is_later_version(latest, version)

    def forget(self) -> None:
        """Know of no version: another history begins."""
        self._latest = ""
