"""Hydra's settings and the Python that reads them."""

from configs import duration as duration  # registers its resolver
