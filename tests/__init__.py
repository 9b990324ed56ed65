"""Tests. PyTorch, NumPy and Triton's own interpreter are the oracles."""
