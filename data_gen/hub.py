"""Data sets of the Hugging Face hub."""

from typing import TYPE_CHECKING

from zoomr.errors import UserError

if TYPE_CHECKING:
    from datasets import Dataset


def load_from_hub(group: str, name: str, revision: str | None, split: str, subset: str | None = None) -> "Dataset":
    """Load a data set, whose rows are read from the disk when they are due.

    Parameters
    ----------
    group : str
        The group of settings that names it: `dataset` or `benchmark`.
    name, split : str
    revision, subset : str or None

    Raises
    ------
    UserError
        If the hub does not answer, or refuses; names the setting for a local copy.
    """
    import datasets
    import huggingface_hub

    # Its retries would be said before our own sentence.
    huggingface_hub.logging.set_verbosity_error()
    try:
        return datasets.load_dataset(name, subset, revision=revision, split=split)
    except Exception as error:
        raise UserError(
            f"{name} could not be loaded from the Hugging Face hub at revision {revision} ({type(error).__name__}): "
            f"check the network and the id, or give a local copy, {group}.path=copy.jsonl."
        ) from error
