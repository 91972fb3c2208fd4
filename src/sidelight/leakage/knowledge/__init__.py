"""What an adversary who already knows some attributes learns from one noisy answer (PDP)."""
