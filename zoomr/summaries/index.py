"""A learned index: which paragraph a step needs, as a bilinear score of two hidden states of one layer."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors import safe_open
from torch import Tensor, nn

from zoomr.errors import UserError

FILE = "index.safetensors"


@dataclass(frozen=True)
class LearnedIndex:
    """Scores summaries at a boundary by `(query @ norm(h_boundary)) . (key @ norm(h_summary_end))`.

    Attributes
    ----------
    layer : int
        The hidden states are what decoder layer `layer` (from 0) puts out.
    query, key : Tensor
        The two projections, (r, h) each, float32.
    eps : float
        Of the norm: mean 0 and variance 1, without weights of its own.
    """

    layer: int
    query: Tensor
    key: Tensor
    eps: float = 1e-5

    @property
    def rank(self) -> int:
        """Numbers kept for each summary."""
        return self.key.shape[0]

    def keys(self, hidden: Tensor) -> Tensor:
        """Return what is kept of summaries, (..., r), from the hidden states of their last tokens, (..., h)."""
        return self._norm(hidden) @ self.key.T

    def scores(self, hidden: Tensor, keys: Tensor) -> Tensor:
        """Score summaries for boundaries.

        Parameters
        ----------
        hidden : Tensor
            Hidden states of boundary tokens, (R, h).
        keys : Tensor
            From `keys`, (R, N, r).

        Returns
        -------
        Tensor
            (R, N), float32; larger is more needed.
        """
        return (keys @ (self._norm(hidden) @ self.query.T)[..., None])[..., 0]

    def _norm(self, hidden: Tensor) -> Tensor:
        return F.layer_norm(hidden.float(), hidden.shape[-1:], eps=self.eps)


def load_index(path: str | Path, model: nn.Module) -> LearnedIndex:
    """Read the index that was fitted to a model.

    Parameters
    ----------
    path : str or Path
        A directory with `index.safetensors`, or a file `latest` that names such a directory beside it.
    model : transformers causal language model
        The one that is going to decode.

    Returns
    -------
    LearnedIndex
        On the model's device.

    Raises
    ------
    UserError
        If there is no index, or it belongs to another model.
    """
    path = Path(path)
    directory = path.parent / path.read_text().strip() if path.name == "latest" and path.is_file() else path
    if not (directory / FILE).is_file():
        raise UserError(f"index={path}: there is no {FILE}; fit one with `python -m train.index`.")
    with safe_open(str(directory / FILE), framework="pt") as file:
        about = json.loads(file.metadata()["index"])
        query, key = (file.get_tensor(name) for name in ("query", "key"))
    own = fingerprint(model)
    if about["model"] != own:
        raise UserError(
            f"index={path} was fitted to another model (fingerprint {about['model']}, this one has {own}): run "
            "`python -m train.index` for this one."
        )
    device = next(model.parameters()).device
    return LearnedIndex(about["layer"], query.to(device), key.to(device), about["eps"])


@torch.no_grad()
def fingerprint(model: nn.Module) -> str:
    """Return a short digest of a model: names and shapes of its weights, and the first values of each.

    The values are taken in bfloat16, so that a checkpoint has one fingerprint whether it is loaded in float32 or in
    bfloat16.
    """
    digest = hashlib.sha256()
    for name, weight in sorted(model.named_parameters()):
        first = weight.flatten()[:256].to("cpu", torch.bfloat16).view(torch.int16).numpy()
        digest.update(f"{name}{tuple(weight.shape)}".encode() + first.tobytes())
    return digest.hexdigest()[:16]


def decoder_layers(model: Any) -> nn.ModuleList:
    """Return the decoder layers of a transformers causal language model; layer n of an index is the n-th of them."""
    count = model.config.get_text_config(decoder=True).num_hidden_layers
    return next(part for part in model.modules() if isinstance(part, nn.ModuleList) and len(part) == count)
