"""Ways to exchange gradients: by gloo, by MPI or by DPUs, each behind one communication hook."""
