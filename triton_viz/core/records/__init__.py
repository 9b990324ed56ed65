"""Records: what a launch leaves behind. Columns hold one value for each program; accesses name elements."""
