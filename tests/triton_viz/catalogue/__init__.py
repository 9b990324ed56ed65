"""Small kernels with one planted bug each, and look-alikes without. `ENTRIES` lists them all.

The lines of a bug are marked in the source, so that a tool which finds it can be held to the line; the
programs that show it are written down beside it.
"""

from tests.triton_viz.catalogue import descriptors, indices, locks, loops, masks, races, views
from tests.triton_viz.catalogue.entry import Entry

THEMES = (masks, views, indices, loops, descriptors, races, locks)

ENTRIES: list[Entry] = [entry for theme in THEMES for entry in theme.ENTRIES]
RACES = ("race", "benign race")
"""Kinds of bugs that the race detector finds; all others are the sanitizer's."""
