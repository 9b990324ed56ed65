"""Servers: a dispatcher and its workers, ready for clients.

Today there is one, `local`, which runs inside the user's program and starts by itself.
"""
