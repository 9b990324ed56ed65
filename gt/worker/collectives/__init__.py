"""Exchanges between workers: each sends what others need of a tensor, and assembles what it receives."""
