"""Collective operations: the library's own, and those offloaded to DPUs."""
