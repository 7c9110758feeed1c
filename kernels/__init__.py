"""Floor 0: compiled arithmetic on flat arrays. No policy, no input or output, no allocation in hot loops."""
