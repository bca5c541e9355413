"""Plan, launch, supervise, store: the fabricbench command."""
