"""Hot paths on the worker: repeated sequences run without overhead per op, and compiled if that is faster."""
