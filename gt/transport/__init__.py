"""Messages between client, dispatcher and worker (`protocol`), and how they are sent.

`connection` has the sockets, `shared_memory` arrays between processes of one host, `direct_reads` data from
workers to clients on other hosts, and `peers` data from worker to worker. Imports `gt.ops` and `gt.stream`.
"""
