"""Load a base model, an adapter or a merged checkpoint, with the two summary delimiters as single tokens."""

import json
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import snapshot_download
from huggingface_hub.errors import HfHubHTTPError, HFValidationError
from transformers import AddedToken, AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from zoomr.errors import UserError
from zoomr.summaries.segments import BEGIN_SUMMARY, END_SUMMARY

DELIMITERS = (BEGIN_SUMMARY, END_SUMMARY)
LATEST = "latest"  # beside the runs of a stage, a file with the name of the last one
EXPORTED = "merged"  # where a run of train.export has its checkpoint
# Weights come as safetensors only: no pickle is ever loaded.
FILES = ["*.json", "*.safetensors", "*.jinja", "*.model", "*.txt"]


def load_tokenizer(path: str | Path, revision: str | None = None) -> PreTrainedTokenizerBase:
    """Return the tokenizer of `path`, in which each of the two delimiters is one special token.

    Parameters
    ----------
    path : str or Path
        A directory or a hub id.
    revision : str, optional
        Commit, branch or tag of a hub id.

    Raises
    ------
    UserError
        If there is no tokenizer.
    """
    tokenizer = AutoTokenizer.from_pretrained(local_files(path, revision))
    add_delimiters(tokenizer)
    return tokenizer


def load(
    path: str | Path,
    revision: str | None = None,
    dtype: str | torch.dtype | None = None,
    device: str | torch.device | None = None,
    attn_implementation: str | None = None,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Return a causal language model ready to evaluate, and its tokenizer.

    Parameters
    ----------
    path : str or Path
        A directory or a hub id: a base model, an adapter (its base is loaded too) or a merged checkpoint.
    revision : str, optional
        Commit, branch or tag of a hub id.
    dtype : str or torch.dtype, optional
        Type of the weights; by default the one they are stored in.
    device : str or torch.device, optional
        By default a GPU if there is one.
    attn_implementation : str, optional
        Name of an attention function of transformers; by default that of the model.

    Returns
    -------
    model : PreTrainedModel
        The transformers model, in evaluation mode. The layers of an adapter are part of it, unmerged.
    tokenizer : PreTrainedTokenizerBase
        Its tokenizer. Rows of delimiters that the checkpoint does not know are initialised the same way each time.

    Raises
    ------
    UserError
        If there is no model, or no tokenizer.
    """
    directory = local_files(path, revision)
    if (directory / "adapter_config.json").exists():
        from peft import PeftConfig, PeftModel

        base = PeftConfig.from_pretrained(str(directory))
        model, tokenizer = load(base.base_model_name_or_path, base.revision, dtype, device, attn_implementation)
        PeftModel.from_pretrained(model, str(directory))  # puts its layers into the model itself
        return model.eval(), tokenizer
    tokenizer = AutoTokenizer.from_pretrained(directory)
    model = AutoModelForCausalLM.from_pretrained(
        directory, dtype=dtype or "auto", attn_implementation=attn_implementation
    )
    make_room_for_delimiters(model, tokenizer)
    place = device or ("cuda" if torch.cuda.is_available() else "cpu")
    return model.to(place).eval(), tokenizer  # type: ignore[arg-type]


def local_files(path: str | Path, revision: str | None = None) -> Path:
    """Return a directory with the files of a model.

    Parameters
    ----------
    path : str or Path
        A directory; a file that holds the name of a directory beside it, as `latest` of a stage does; or a hub id,
        downloaded if the cache does not hold it.
    revision : str, optional
        Commit, branch or tag of a hub id.

    Raises
    ------
    UserError
        If `path` holds no model, or the hub cannot deliver it.
    """
    directory = Path(path)
    if directory.name == LATEST and directory.is_file():
        directory = directory.parent / directory.read_text().strip()
    if directory.exists():
        for place in (directory, directory / EXPORTED):
            if any((place / name).is_file() for name in ("config.json", "adapter_config.json")):
                return place
        raise UserError(f"path={path} holds no model: no config.json, no adapter_config.json.")
    try:
        return Path(snapshot_download(str(path), revision=revision, allow_patterns=FILES, ignore_patterns="original/*"))
    except (OSError, HfHubHTTPError, HFValidationError) as error:
        where = f"path={path}" + (f" at revision={revision}" if revision else "")
        raise UserError(f"{where} is neither a directory nor a model that the hub could deliver.") from error


def add_delimiters(tokenizer: PreTrainedTokenizerBase) -> None:
    """Make each delimiter one special token of `tokenizer`, in every context; known ones stay as they are.

    New ids lie above the largest one in use.

    Raises
    ------
    UserError
        If the tokenizer would give them ids of tokens that it has already.
    """
    vocabulary = tokenizer.get_vocab()
    missing = [token for token in DELIMITERS if token not in vocabulary]
    if not missing:
        return
    if len(vocabulary) <= max(vocabulary.values()):
        _add_to_vocabulary(tokenizer, {token: max(vocabulary.values()) + n for n, token in enumerate(missing, start=1)})
    tokenizer.add_tokens([AddedToken(token, special=True, normalized=False) for token in missing], special_tokens=True)
    taken = set(vocabulary.values())
    if any(tokenizer.convert_tokens_to_ids(token) in taken for token in missing):
        raise UserError(f"The tokenizer of {tokenizer.name_or_path!r} has unused ids and takes no tokens above them.")


def _add_to_vocabulary(tokenizer: Any, ids: dict[str, int]) -> None:
    """Write tokens into the model of a fast tokenizer, which numbers added ones from the count of its tokens.

    Where ids are left out, that count is the id of another token. A token that the model knows keeps its id.
    """
    core = getattr(tokenizer, "backend_tokenizer", None)
    if core is None:
        return
    description = json.loads(core.to_str())
    words = description["model"].get("vocab")
    if isinstance(words, dict):
        words |= ids
        tokenizer._tokenizer = core.from_str(json.dumps(description))


@torch.no_grad()
def make_room_for_delimiters(model: Any, tokenizer: PreTrainedTokenizerBase) -> None:
    """Add the delimiters to `tokenizer` and give new ones rows in the embedding and the head of `model`.

    A new row is the mean of the rows of the sub-tokens that the delimiter's text was cut into before (of all rows, if
    the tokenizer knew none of it). A matrix with rows to spare, as padded vocabularies have them, keeps its size.
    """
    vocabulary = tokenizer.get_vocab()
    pieces = {t: tokenizer(t, add_special_tokens=False).input_ids for t in DELIMITERS if t not in vocabulary}
    add_delimiters(tokenizer)
    needed = 1 + max(tokenizer.get_vocab().values())
    if needed > model.get_input_embeddings().weight.shape[0]:
        model.resize_token_embeddings(needed, mean_resizing=False)
    layers = (model.get_input_embeddings(), model.get_output_embeddings())
    for weight in {id(layer.weight): layer.weight for layer in layers}.values():  # one where they are tied
        for token, ids in pieces.items():
            mean = weight[ids or list(vocabulary.values())].float().mean(0)
            weight[tokenizer.convert_tokens_to_ids(token)] = mean.to(weight.dtype)
