"""Two runs, or a run and a baseline of several, metric by metric."""
