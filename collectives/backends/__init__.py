"""Collectives of torch.distributed's backends, measured beside MPI's own in the same jobs."""
