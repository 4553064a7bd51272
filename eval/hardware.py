"""How fast a device would train and decode a model: a roofline, for estimates before anything is run."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """What of a model sets its cost.

    Attributes
    ----------
    parameters : float
    layers, heads, kv_heads, head_dim : int
        ``heads`` are the query heads.
    bytes_per_number : int
        Of weights and KVs.
    """

    parameters: float
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    bytes_per_number: int = 2

    @property
    def weights(self) -> float:
        """Bytes of the weights."""
        return self.parameters * self.bytes_per_number

    @property
    def kv(self) -> int:
        """Bytes of one token's keys and values."""
        return 2 * self.layers * self.kv_heads * self.head_dim * self.bytes_per_number

    def attention(self, context: float) -> float:
        """FLOPs of one token's attention to `context` tokens, forward."""
        return 4 * self.layers * self.heads * self.head_dim * context


@dataclass(frozen=True)
class Device:
    """A device and what part of its peak is reached.

    Attributes
    ----------
    name : str
    flops : float
        A second, dense, in the type of the weights.
    bandwidth : float
        Bytes a second.
    memory : float
        Bytes.
    training, prefill, decode : float
        Shares of the FLOP/s, of the FLOP/s and of the bandwidth that training, prefill and decoding reach.
    step : float
        Seconds that one decoding step takes at least, whatever there is to compute.
    price : float
        Dollars an hour.
    """

    name: str
    flops: float
    bandwidth: float
    memory: float
    training: float
    prefill: float
    decode: float
    step: float
    price: float

    def training_rate(self, model: Shape, length: float) -> float:
        """Tokens a second of LoRA training on rows of `length` tokens, activations recomputed.

        Forward, recomputation and the gradients of activations; frozen weights need no gradients of their own.
        """
        return self.flops * self.training / (3 * (2 * model.parameters + model.attention(length / 2)))

    def prefill_rate(self, model: Shape, length: float) -> float:
        """Tokens a second of prompts of `length` tokens."""
        return self.flops * self.prefill / (2 * model.parameters + model.attention(length / 2))

    def decode_rate(self, model: Shape, prompt: float, length: float, batch: int) -> float:
        """Tokens a second of all rows with a full cache, averaged over answers of `length` tokens.

        The batch is as large as the memory allows, `batch` at most. Each step reads the weights and every row's KVs.
        """
        room = self.memory - model.weights
        rows = max(1, min(batch, int(room / (model.kv * (prompt + length)))))
        read = model.weights + rows * model.kv * (prompt + length / 2)
        computed = rows * 2 * model.parameters / (self.flops * self.prefill)
        return rows / max(self.step, read / (self.bandwidth * self.decode), computed)
