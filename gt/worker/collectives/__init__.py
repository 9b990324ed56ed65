"""Exchanges between workers: each worker sends parts of its tensor, and assembles the parts it receives."""
