"""The records of a launch. Columns hold one value for each program; accesses name elements."""
