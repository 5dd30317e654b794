// Checkpoints
