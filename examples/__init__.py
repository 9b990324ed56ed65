"""Runnable examples. Each file starts with the command that runs it."""
