"""Language models that others trained, in a local folder of Hugging Face's layout: the embeddings of their number
tokens, and the whole of a GPT-2 or a Pythia with the course's hooks.

Nothing is ever downloaded, and only safetensors are read, as pickled weights could run code. Of the numbers only their
rows are read, so that a model of any size fits.
"""

import json
import shlex
import sys
from itertools import count
from pathlib import Path

import torch
from jaxtyping import Float, Int
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from companion.core.hooks import Hooked, HookPoints

try:
    import tokenizers
except ImportError:  # comes with the extra "pretrained"; without it the rest of the course does not miss it
    tokenizers = None

INSTALL = shlex.join([sys.executable, "-m", "pip", "install", "-c", "constraints.txt", "-e", ".[pretrained]"])
EMBEDDINGS = (  # each kind with its language-model head, and alone
    "transformer.wte.weight",  # GPT-2, GPT-J, GPT-Neo
    "wte.weight",
    "model.embed_tokens.weight",  # Llama and its kin, Phi
    "embed_tokens.weight",
    "gpt_neox.embed_in.weight",  # GPT-NeoX: Pythia
    "embed_in.weight",
    "roberta.embeddings.word_embeddings.weight",  # RoBERTa
    "embeddings.word_embeddings.weight",
)
FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
KINDS = ("gpt2", "gpt_neox")  # whose heads and MLPs `LanguageModel` finds
FEWEST_ASKED, FEWEST_FOUND = 20, 100


class PretrainedError(ValueError):
    """A folder, or a file in it, that cannot be read as a language model with numbers; the message says why."""


def number_embeddings(folder: str | Path, numbers: int | None = None) -> Float[Tensor, "numbers width"]:
    """Read the input embeddings of the numbers 0, 1, .., ``numbers`` - 1, in float32: of their tokens, as
    `number_tokens` finds them.

    Zhou et al. (2024), arXiv:2406.03445, look at those of GPT-2-XL. Raises PretrainedError (a ValueError) for a folder
    or a file that cannot be used, ValueError for ``numbers`` < 20.
    """
    return token_embeddings(folder, list(number_tokens(folder, numbers).values()))


def number_tokens(folder: str | Path, numbers: int | None = None) -> dict[str, int]:
    """Return how each number is written, in order, and the one token that this is: {" 0": 657, " 1": 352, ..} or {"0":
    15, "1": 16, ..}.

    Within a text a number follows a space, and in GPT-2's vocabulary the space is part of the token; other vocabularies
    keep it apart. All numbers are written alike, in the way that has more of them in one token each, counted from 0
    (with the space, if both have as many). ``None`` takes as many as there are. Raises PretrainedError where the
    tokenizer is missing or damaged, or splits a number before ``numbers`` (before 100 for None); ValueError for
    ``numbers`` < 20, too few for a wave of period 10.
    """
    folder = _existing(folder)
    if numbers is not None and numbers < FEWEST_ASKED:
        raise ValueError(
            f"numbers = {numbers!r}: must be at least {FEWEST_ASKED}, or None for as many as are one token each"
        )
    tokenizer = _tokenizer(folder)
    with_space, without = (_single_tokens(tokenizer, before, numbers) for before in (" ", ""))
    found = with_space if len(with_space) >= len(without) else without
    needed = FEWEST_FOUND if numbers is None else numbers
    if len(found) < needed:
        first = f"{' ' if found is with_space else ''}{len(found)}"
        pieces = tokenizer.encode(first, add_special_tokens=False).tokens
        asked = f"numbers = {numbers}" if numbers is not None else f"a spectrum of at least {FEWEST_FOUND} numbers"
        raise PretrainedError(
            f"{folder}: its tokenizer reads {first!r} as {pieces}, not as one token; {asked} needs 0 to {needed - 1}, "
            f"of which the first {len(found)} are one token each"
        )
    return found


def token_embeddings(folder: str | Path, tokens: list[int]) -> Float[Tensor, "tokens width"]:
    """Read the rows ``tokens`` of the model's input embedding, in float32; the rest of the file stays on the disk.

    Raises PretrainedError for a folder without safetensors, a file that is missing, truncated or foreign, and an
    embedding that is not there, is not a table of finite floating-point numbers, has no such row, or has the same row
    for all of them.
    """
    path, name = _embedding(_existing(folder))
    with _opened(path) as file:
        if name not in file.keys():
            raise PretrainedError(f"{path}: has no tensor {name}, though the index says so")
        table = file.get_slice(name)
        shape = table.get_shape()
        if len(shape) != 2 or shape[0] <= max(tokens):
            raise PretrainedError(
                f"{path}: {name} has shape {tuple(shape)}; must be (tokens, width), with more than {max(tokens)} tokens"
            )
        rows = torch.stack([table[token] for token in tokens])
    if rows.dtype not in FLOATS:
        raise PretrainedError(
            f"{path}: {name} has dtype {rows.dtype}; must be floating point of 16 bits or more, not quantized"
        )
    if not rows.isfinite().all() or (len(rows) > 1 and (rows == rows[0]).all()):
        raise PretrainedError(
            f"{path}: {name} was never trained, or is damaged: rows must be finite, and not all the same"
        )
    return rows.float()


class LanguageModel(Hooked):
    """A GPT-2 or a GPT-NeoX (Pythia) of a local folder, run by ``transformers``, with a decoder's names for each head's
    values and outputs and for each MLP's output.

    Sizes are ``layers``, ``heads``, ``context`` and ``tokens``, how many its tokenizer knows; ``tokenizer`` is the
    tokenizer, ``inputs`` has each MLP's first matrix, to look at and to cut. Raises PretrainedError (a ValueError) for
    a folder or a file that cannot be used, and for a model of another kind.
    """

    def __init__(self, folder: str | Path):
        super().__init__()
        folder = _existing(folder)
        self.tokenizer = _tokenizer(folder)
        self.model = _language_model(folder)
        config, body = self.model.config, self.model.base_model
        self.heads, self.context, self.tokens = (
            config.num_attention_heads,
            config.max_position_embeddings,
            self.tokenizer.get_vocab_size(),
        )
        if config.model_type == "gpt2":
            self.norm = body.ln_f
            parts = [(block.attn.c_attn, block.attn.c_proj, block.mlp, block.mlp.c_fc) for block in body.h]
        else:
            self.norm = body.final_layer_norm
            parts = [
                (block.attention.query_key_value, block.attention.dense, block.mlp, block.mlp.dense_h_to_4h)
                for block in body.layers
            ]
        self.layers, self.inputs = len(parts), [first.weight for *_, first in parts]
        self.outputs = [out.weight if config.model_type == "gpt2" else out.weight.mT for _, out, *_ in parts]
        prefixes = [f"blocks.{layer}." for layer in range(self.layers)]
        self.at = HookPoints(prefix + n for prefix in prefixes for n in ("attn.hook_v", "attn.hook_z", "hook_mlp_out"))
        for prefix, (qkv, out, mlp, _) in zip(prefixes, parts, strict=True):
            qkv.register_forward_hook(self._values(prefix + "attn.hook_v"))
            out.register_forward_pre_hook(self._heads(prefix + "attn.hook_z"))
            mlp.register_forward_hook(lambda _, __, value, name=prefix + "hook_mlp_out": self.at(name, value))
        self.requires_grad_(False)
        self.eval()

    def forward(self, tokens: Int[Tensor, "batch length"]) -> Float[Tensor, "batch length vocabulary"]:
        """Compute every token's logit."""
        return self.model(tokens, use_cache=False).logits

    def patterns(self, tokens: Int[Tensor, "batch length"]) -> list[Float[Tensor, "batch heads length length"]]:
        """Return the attention patterns of every layer."""
        return list(self.model(tokens, use_cache=False, output_attentions=True).attentions)

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text."""
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def direct(
        self, layer: int, values: Float[Tensor, "batch heads length h"], tokens: Int[Tensor, "candidates"]
    ) -> Float[Tensor, "batch heads length candidates"]:
        """Return what each head of a layer would add to the logits of ``tokens`` on the straight way to the output, if
        it looked at one position alone and handed over that position's ``values``; up to the last norm's scale.
        """
        written = values @ self.outputs[layer].unflatten(0, (self.heads, -1))
        centred = (written - written.mean(-1, keepdim=True)) * self.norm.weight
        return centred @ self.model.get_output_embeddings().weight[tokens].mT

    def _values(self, name: str):
        """A forward hook on the map to queries, keys and values: all queries first in GPT-2, head by head in NeoX."""
        kinds_first = self.model.config.model_type == "gpt2"

        def hook(_, __, qkv):
            split = qkv.clone().unflatten(-1, (3, self.heads, -1) if kinds_first else (self.heads, 3, -1))
            v = split[..., 2, :, :] if kinds_first else split[..., 2, :]
            v.copy_(self.at(name, v.transpose(1, 2)).transpose(1, 2))
            return split.flatten(-3)

        return hook

    def _heads(self, name: str):
        """A hook before the map out of the heads."""

        def hook(_, inputs):
            z = self.at(name, inputs[0].unflatten(-1, (self.heads, -1)).transpose(1, 2))
            return (z.transpose(1, 2).flatten(2),)

        return hook


def _language_model(folder: Path) -> nn.Module:
    """As ``transformers`` reads it, in float32."""
    try:
        import transformers  # noqa: PLC0415 (it takes seconds, which `numbers` should not wait for)
    except ImportError:
        raise PretrainedError(
            f"the package transformers is not installed; `{INSTALL}` in the course's folder installs it"
        ) from None
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    _embedding(folder)  # names a missing or damaged file better than the library does
    try:
        config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
        if config.model_type not in KINDS:
            raise PretrainedError(f"{folder}: a model of type {config.model_type!r}; must be {' or '.join(KINDS)}")
        model = transformers.AutoModelForCausalLM.from_pretrained(
            folder, local_files_only=True, use_safetensors=True, attn_implementation="eager"
        )
    except PretrainedError:
        raise
    except Exception as error:  # many classes, for a config or weights that do not fit
        reason = str(error).strip().splitlines()[0]
        raise PretrainedError(f"{folder}: cannot be read as a language model ({reason})") from None
    return model.float()


def _existing(folder: str | Path) -> Path:
    folder = Path(folder)
    if not folder.is_dir():
        wrong = "a file" if folder.is_file() else "no such folder"
        raise PretrainedError(
            f"folder = {str(folder)!r}: {wrong}; must be one on this machine that holds "
            "model.safetensors and tokenizer.json (nothing is downloaded)"
        )
    return folder


def _tokenizer(folder: Path) -> "tokenizers.Tokenizer":
    """From ``tokenizer.json``, or else from GPT-2's ``vocab.json`` and ``merges.txt``."""
    if tokenizers is None:
        raise PretrainedError(
            f"the package tokenizers is not installed; `{INSTALL}` in the course's folder installs it"
        )
    whole, vocabulary, merges = (folder / name for name in ("tokenizer.json", "vocab.json", "merges.txt"))
    if not whole.is_file() and not (vocabulary.is_file() and merges.is_file()):
        raise PretrainedError(f"{folder}: has no tokenizer; must hold tokenizer.json, or vocab.json and merges.txt")
    try:
        if whole.is_file():
            tokenizer = tokenizers.Tokenizer.from_file(str(whole))
        else:
            tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE.from_file(str(vocabulary), str(merges)))
            tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
            tokenizer.decoder = tokenizers.decoders.ByteLevel()
    except Exception as error:  # the library has no class of its own for it
        wrong = whole if whole.is_file() else f"{vocabulary}, {merges.name}"
        raise PretrainedError(f"{wrong}: not a tokenizer, or a truncated one ({error})") from None
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _single_tokens(tokenizer: "tokenizers.Tokenizer", before: str, most: int | None) -> dict[str, int]:
    """The numbers from 0, ``most`` at most, up to the first that is not a token which reads as this very number
    (unknown words do not).
    """
    found = {}
    for number in count() if most is None else range(most):
        text = f"{before}{number}"
        tokens = tokenizer.encode(text, add_special_tokens=False).ids
        if len(tokens) != 1 or tokenizer.decode(tokens).strip() != str(number):
            break
        found[text] = tokens[0]
    return found


def _embedding(folder: Path) -> tuple[Path, str]:
    """The file that holds the input embedding, and the embedding's name in it."""
    whole, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if whole.is_file():
        with _opened(whole) as file:
            files = dict.fromkeys(file.keys(), whole.name)
    elif index.is_file():
        try:
            files = dict(json.loads(index.read_text(encoding="utf-8"))["weight_map"])
        except (KeyError, TypeError, ValueError):
            raise PretrainedError(
                f"{index}: not the index of a checkpoint in several files, or a truncated one"
            ) from None
    else:
        raise PretrainedError(
            f"{folder}: has no weights; must hold {whole.name} or {index.name}. Pickled weights are not read; the "
            "package transformers turns them into safetensors: load the model, then model.save_pretrained(folder)"
        )
    for name in EMBEDDINGS:
        if name in files:
            file = str(files[name])
            if Path(file).name != file or file in ("", ".."):
                raise PretrainedError(f"{index}: {name} is said to be in {file!r}; must be a file of this folder")
            return folder / file, name
    raise PretrainedError(
        f"{folder}: no input embedding among its {len(files)} tensors; must be named {' or '.join(EMBEDDINGS)}"
    )


def _opened(path: Path) -> safe_open:
    if not path.is_file():
        raise PretrainedError(f"{path}: no such file, though the index names it")
    try:
        return safe_open(path, "pt")
    except (OSError, SafetensorError) as error:
        raise PretrainedError(f"{path}: not a safetensors file, or a truncated one ({error})") from None
