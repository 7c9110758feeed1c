"""Floor 4: what people touch."""
