"""Evaluation: generate, score, profile, report."""
