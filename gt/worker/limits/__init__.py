"""Memory limits of a worker: an op that would not fit fails, and the worker continues."""
