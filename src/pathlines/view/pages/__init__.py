"""The pages: one small file each."""


def open_pages() -> None:
    """Register every page at its address."""
    from pathlines.view.pages import play

    for page in (play,):
        page.register()
