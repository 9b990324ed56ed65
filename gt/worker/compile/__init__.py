"""Hot paths on the worker: repeated sequences run without per-op overhead, and compiled once that pays."""
