"""Training: networks, and data-parallel steps with and without their communication."""
