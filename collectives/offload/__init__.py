"""Collectives that run on DPUs while their hosts compute."""
