"""The exercises' checks: one module per topic, on the machinery of `companion.checks.exercise`."""
