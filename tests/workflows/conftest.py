"""Everything here that needs a store is proven on both."""

from both_stores import store_url

__all__ = ["store_url"]
