"""Functions of this group of the op table, as `gt.NAME`."""

__all__: list[str] = []
