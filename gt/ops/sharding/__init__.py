"""The sharding rules of the op table: for each op, the ways it can be computed on shards of its inputs."""
