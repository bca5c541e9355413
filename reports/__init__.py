"""Reports: read a run's records; summaries, findings, text, JSON and CSV. Needs neither MPI nor torch."""
