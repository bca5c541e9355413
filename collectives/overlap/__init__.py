"""How much of a collective hides behind a host's compute: on the host, and offloaded to DPUs."""
