"""Pictures of the page for the documents."""

MOST_BYTES = 200_000


class Pictures:
    """Takes pictures; BAYPLAN_PICTURES says where to keep them, and docs/images has those of the last time."""

    def __init__(self, folder):
        self.folder = folder

    def take(self, page, name):
        path = self.folder / f"{name}.png"
        page.screenshot(path=path, animations="disabled")
        return path.stat().st_size
