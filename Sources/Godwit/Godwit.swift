// Godwit
