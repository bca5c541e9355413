"""The native loop, samples, statistics, records, and point-to-point benchmarks."""
