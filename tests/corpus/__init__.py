"""Kernels that a grid executor must run right, each with an oracle. `CASES` lists them all."""
