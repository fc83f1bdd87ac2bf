"""Logs that training programs write: prefixes, steps, checkpoints, errors, and the times of lines without a stamp."""
