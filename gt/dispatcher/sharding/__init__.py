"""Sharding: rewrites a client's instructions for many workers.

`modifier` is the stream modifier; `planning` chooses how an op runs on shards; `policy` places new tensors;
`placed_repeats` caches the placement of repeated sequences.
"""
