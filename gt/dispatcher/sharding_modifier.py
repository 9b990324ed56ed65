"""`gt.dispatcher.sharding.modifier`, under the path that the specification names."""

from gt.dispatcher.sharding.modifier import ShardingStreamModifier

__all__ = ["ShardingStreamModifier"]
