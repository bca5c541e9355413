"""The figures that the project holds itself to: honest benchmarks, run by make targets, never by CI."""
