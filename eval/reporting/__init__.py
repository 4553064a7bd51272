"""From scored cells to tables, figures and sentences. Everything here is a function of the cells on disk."""
