"""The CFD workload: compressible flow in a box, its halos exchanged and its residual reduced in every step."""
