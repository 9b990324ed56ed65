"""Control flow over lanes: kernels are rewritten so that branches and loops run for all programs at once."""
