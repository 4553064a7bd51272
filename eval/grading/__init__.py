"""From a generation and a gold answer to a verdict."""
