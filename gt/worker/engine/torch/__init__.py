"""Functions that PyTorch spells differently from the op table, one module for each group of it."""
