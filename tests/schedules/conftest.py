"""Everything here that needs a store is proven on both."""

from both_stores import declared_yard, hosts, keeping, paused, store_url

__all__ = ["declared_yard", "hosts", "keeping", "paused", "store_url"]
