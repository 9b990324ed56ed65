"""Exchanges between workers: each sends the parts that others need, and assembles the parts it receives."""
