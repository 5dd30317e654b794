// Commit
