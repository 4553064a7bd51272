"""An adapter and its base become one checkpoint, whose logits are compared with the adapter's."""

import shutil
from pathlib import Path
from typing import Any

import torch
from peft import PeftConfig, PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer

from zoomr.errors import UserError
from zoomr.loading import load
from zoomr.prompts import end_of_turn

PROBE_LENGTH = 64


def merge(adapter: Path, directory: Path, dtype: str, tolerance: float) -> dict[str, float]:
    """Write the merged checkpoint of an adapter.

    The merge is computed in float32 and then cast, since an update added to bfloat16 weights is rounded away in part.

    Parameters
    ----------
    adapter : Path
        A directory that train.sft wrote.
    directory : Path
        Where the checkpoint goes; an unfinished one there is replaced.
    dtype : str
        Type of the stored weights.
    tolerance : float
        The largest difference of float32 logits that the merge may make, and that storing and reloading may make, as a
        share of the largest logit.

    Returns
    -------
    dict of str to float
        Largest difference of logits, as such a share: by the ``merge``, by storing and reloading (``reload``), and of
        the reloaded checkpoint to the adapter (``total``), which includes the cast to `dtype`.

    Raises
    ------
    UserError
        If a difference exceeds `tolerance`, or the merge unties the head from the embedding.
    """
    config = PeftConfig.from_pretrained(str(adapter))
    model, tokenizer = load(config.base_model_name_or_path or "", config.revision, torch.float32, "cpu")
    probe, tied = _probe(len(tokenizer)), model.config.tie_word_embeddings
    adapted: Any = PeftModel.from_pretrained(model, str(adapter)).eval()
    expected = _logits(adapted, probe)
    merged = adapted.merge_and_unload(safe_merge=True)
    gaps = {"merge": _gap(_logits(merged, probe), expected)}
    head, embedding = merged.get_output_embeddings().weight, merged.get_input_embeddings().weight
    if tied and head is not embedding:
        raise UserError(f"export.adapter={adapter} trained the head apart from the embedding that it shares.")

    _cast(merged, getattr(torch, dtype))
    _keep_stop_tokens(merged.generation_config, tokenizer)
    work = directory.with_name(f".{directory.name}.partial")
    shutil.rmtree(work, ignore_errors=True)
    merged.save_pretrained(work)
    AutoTokenizer.from_pretrained(adapter).save_pretrained(work)
    stored = _logits(_cast(merged, torch.float32), probe)
    del merged, adapted, model
    reloaded = _logits(AutoModelForCausalLM.from_pretrained(work, dtype=torch.float32).eval(), probe)
    gaps |= {"reload": _gap(reloaded, stored), "total": _gap(reloaded, expected)}
    for step in ("merge", "reload"):
        if gaps[step] > tolerance:
            raise UserError(f"export.tolerance={tolerance}: the {step} changes the logits by {gaps[step]:.1e}.")
    shutil.rmtree(directory, ignore_errors=True)
    work.rename(directory)
    return gaps


def _probe(vocabulary: int) -> torch.Tensor:
    """Token ids (1, T) from all over the vocabulary, the delimiters at its end included."""
    return torch.linspace(0, vocabulary - 1, PROBE_LENGTH).round().long()[None]


def _cast(model: Any, dtype: torch.dtype) -> Any:
    """Cast the weights alone: `Module.to` would round the rotary frequencies, which are computed and not stored."""
    for parameter in model.parameters():
        parameter.data = parameter.data.to(dtype)
    return model


@torch.inference_mode()
def _logits(model: Any, probe: torch.Tensor) -> torch.Tensor:
    """Logits (1, T, V). Not in float64, for which a large model's weights would have to be held a second time."""
    return model(probe).logits


def _gap(one: torch.Tensor, other: torch.Tensor) -> float:
    """Largest difference as a share of the largest logit, since a sum's order alone moves logits by such a share."""
    return ((one - other).abs().max() / other.abs().max()).item()


def _keep_stop_tokens(generation: Any, tokenizer: Any) -> None:
    """Add to the end ids of a generation config the one that training rows end with."""
    known = generation.eos_token_id if isinstance(generation.eos_token_id, list) else [generation.eos_token_id]
    generation.eos_token_id = sorted(
        {i for i in (*known, tokenizer.eos_token_id, end_of_turn(tokenizer)) if i is not None}
    )
