"""Where data comes from: one module per topic, batched, seeded, on any device."""
