"""Hydra's settings and the one Python file that reads them."""
