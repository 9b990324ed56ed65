"""The ops of Triton's language on the grid executor: the builder and its groups of methods."""
