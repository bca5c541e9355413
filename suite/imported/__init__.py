"""Output of other suites, read as results: one module a format, pure functions from text to what was understood."""
