"""Summaries as an index into a row: its segments, keys, votes and what is kept of them."""
