"""The classical algorithm that a model is compared with: one module per topic, batched, exact."""
