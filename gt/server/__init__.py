"""Servers: a dispatcher and its workers, ready for clients.

`local` runs inside the user's program, `server` behind a socket (`python -m gt.server`), and `processes`
starts one of the latter, with workers, that ends with the program.
"""
