"""Control flow over lanes: kernels are rewritten so that branches and loops work on all programs at once."""
