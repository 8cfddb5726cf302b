"""Language models that others trained, in a local folder of Hugging Face's layout or fetched before: the embeddings of
their number tokens, and the whole of a Llama, a GPT-2 or a Pythia with the course's hooks.

Nothing is ever downloaded, and only safetensors are read, as pickled weights could run code. Of the numbers only their
rows are read, so that a model of any size fits.
"""

from collections.abc import Sequence
from itertools import count
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from companion.core.arguments import check_range
from companion.core.circuits import known_norm, unscaled
from companion.core.extras import Extra
from companion.core.hooks import Hooked, HookPoints
from companion.core.llama import Llama
from companion.pretrained.folder import (
    PretrainedError,
    existing,
    opened,
    read_config,
    read_tokenizer,
    tensor_files,
)
from companion.pretrained.llama import FLOATS, read_llama
from companion.pretrained.memory import free_memory

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers.modeling_utils import PreTrainedModel

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
THEIRS = {  # where transformers has the layers and the last norm; of a layer, the maps into and out of its heads, MLPs
    "gpt2": ("h", "ln_f", ("attn.c_attn", "attn.c_proj", "mlp", "mlp.c_fc")),
    "gpt_neox": (
        "layers",
        "final_layer_norm",
        ("attention.query_key_value", "attention.dense", "mlp", "mlp.dense_h_to_4h"),
    ),
}
KINDS = (*THEIRS, "llama")  # whose heads and MLPs `LanguageModel` finds
FEWEST_ASKED, FEWEST_FOUND = 20, 100
WORKING = 100_000_000  # bytes: what 4 texts of 80 tokens take, with all their patterns


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
    folder = existing(folder)
    if numbers is not None and numbers < FEWEST_ASKED:
        raise ValueError(
            f"numbers = {numbers!r}: must be at least {FEWEST_ASKED}, or None for as many as are one token each"
        )
    tokenizer = read_tokenizer(folder)
    with_space, without = (_single_tokens(tokenizer, before, numbers) for before in (" ", ""))
    found = with_space if len(with_space) >= len(without) else without
    needed = FEWEST_FOUND if numbers is None else numbers
    if len(found) < needed:
        first = f"{' ' if found is with_space else ''}{len(found)}"
        pieces = tokenizer.encode(first, add_special_tokens=False).tokens
        asked = f"numbers = {numbers}" if numbers is not None else f"a spectrum of at least {FEWEST_FOUND} numbers"
        asked += f" needs 0 to {needed - 1} as one token each"
        why = ", as its digits are tokens of their own" if [*first] == pieces else ""
        raise PretrainedError(
            f"{folder}: its tokenizer reads {first!r} as {pieces}, not as one token{why}; {asked}, and only the first "
            f"{len(found)} are"
        )
    return found


def token_embeddings(folder: str | Path, tokens: list[int]) -> Float[Tensor, "tokens width"]:
    """Read the rows ``tokens`` of the model's input embedding, in float32; the rest of the file stays on the disk.

    Raises PretrainedError for a folder without safetensors, a file that is missing, truncated or foreign, and an
    embedding that is not there, is not a table of finite floating-point numbers, has no such row, or has the same row
    for all of them.
    """
    path, name = _embedding(existing(folder))
    with opened(path) as file:
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
            f"{path}: {name} has rows that are all the same, or not finite; must be that of a trained model"
        )
    return rows.float()


class LanguageModel(Hooked):
    """A language model that is on this machine: a Llama, which is the course's own `companion.core.llama.Llama` with
    all its names; or a GPT-2 or a GPT-NeoX (Pythia), run by ``transformers``, with a decoder's names for each head's
    values and outputs and for each MLP's output.

    >>> model = LanguageModel("smollm2")
    >>> tokens = model.batch(["The capital of France is"])
    >>> model.decode(model(tokens, only_last=True)[0, -1].argmax(-1, keepdim=True))
    ' Paris'

    Sizes are ``layers``, ``heads``, ``context`` and ``tokens``, how many its tokenizer knows and its embedding has rows
    for; ``tokenizer`` is the tokenizer. ``inputs`` has each MLP's first matrix, to look at and to cut. Of a SwiGLU's
    three matrices, the two that read the stream, gate and up, are this first one, the gate's rows above: cut, both are
    blind for the same directions of the stream; the third, which writes, stays whole. ``outputs`` has each layer's map
    out of the heads, ``norm`` and ``unembedding`` read the last stream.

    ``folder``: the model's, or the name of a model that ``python -m companion fetch`` has brought: "smollm2".
    ``dtype``: the precision in which it computes; ``torch.bfloat16`` takes half of the memory.

    Raises PretrainedError (a ValueError) for a folder or a file that cannot be used, for a model of another kind, and
    where too little memory is free.
    """

    trained = True  # but for what stands in for it in a lesson (`companion.pretrained.lesson`)

    def __init__(self, folder: str | Path, *, dtype: torch.dtype = torch.float32):
        super().__init__()
        folder = existing(folder)
        self.tokenizer = read_tokenizer(folder)
        settings = read_config(folder)
        self.kind = settings["model_type"]
        if self.kind not in KINDS:
            raise PretrainedError(
                f"{folder}: model_type = {self.kind!r}; must be {', '.join(KINDS[:-1])} or {KINDS[-1]}"
            )
        _check_memory(folder, dtype)
        if self.kind == "llama":
            self._look_into_llama(read_llama(folder, settings, dtype))
        else:
            theirs = by_transformers(folder)
            nn.Module.to(theirs, dtype)  # their own `to` has no types
            self._look_into_theirs(theirs)
        self.tokens = min(self.tokenizer.get_vocab_size(), len(self.unembedding))
        self.requires_grad_(False)
        self.eval()

    @property
    def body(self) -> Llama:
        """Return the module with the blocks and the last norm. Raises ValueError for a model that is no Llama."""
        if not isinstance(self.model, Llama):
            raise ValueError(f"kind = {self.kind!r}: must be 'llama', whose blocks are the course's own")
        return self.model

    def forward(
        self, tokens: Int[Tensor, "batch length"], *, only_last: bool = False
    ) -> Float[Tensor, "batch places vocabulary"]:
        """Compute every token's logit for the token after each place, or after the last one alone. Raises ValueError
        for more tokens than the context has, and for one without a row in the embedding.
        """
        if self.kind == "llama":
            return self.model(tokens, only_last=only_last)
        self._check(tokens)
        logits = self.model(tokens, use_cache=False).logits
        return logits[:, -1:] if only_last else logits

    def patterns(self, tokens: Int[Tensor, "batch length"]) -> list[Float[Tensor, "batch heads length length"]]:
        """Return the attention patterns of every layer."""
        if self.kind != "llama":
            self._check(tokens)
            return list(self.model(tokens, use_cache=False, output_attentions=True).attentions)
        names = [f"blocks.{layer}.attn.hook_pattern" for layer in range(self.layers)]
        return list(self.run_with_cache(tokens, names=names, only_last=True)[1].values())

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text. Raises PretrainedError for one without a row in the embedding."""
        tokens, rows = self.tokenizer.encode(text, add_special_tokens=False).ids, len(self.unembedding)
        for token in tokens:
            if token >= rows:
                raise PretrainedError(
                    f"text = {text!r}: its token {self.tokenizer.id_to_token(token)!r} is number {token}, and the "
                    f"embedding has rows for 0 to {rows - 1} alone: tokens were added to the tokenizer, and no rows"
                )
        return tokens

    def batch(self, texts: Sequence[str]) -> Int[Tensor, "batch length"]:
        """Return the tokens of several texts. Raises ValueError unless all have as many: nothing is padded here, as
        what stands in a gap would be read.
        """
        tokens = [self.encode(text) for text in texts]
        for text, each in zip(texts, tokens, strict=True):
            if len(each) != len(tokens[0]):
                raise ValueError(
                    f"texts: {text!r} has {len(each)} tokens, {texts[0]!r} {len(tokens[0])}; must all have as many"
                )
        return torch.tensor(tokens)

    def decode(self, tokens: Int[Tensor, "length"] | Sequence[int]) -> str:
        """Return the text of tokens."""
        return self.tokenizer.decode([int(token) for token in tokens], skip_special_tokens=False)

    def direct(
        self, layer: int, values: Float[Tensor, "batch heads length h"], tokens: Int[Tensor, "candidates"]
    ) -> Float[Tensor, "batch heads length candidates"]:
        """Return what each head of a layer would add to the logits of ``tokens`` on the straight way to the output, if
        it looked at one position alone and handed over that position's ``values``; up to the last norm's scale.
        """
        written = values @ self.outputs[layer].unflatten(0, (self.heads, -1))
        return unscaled(self.norm, written) @ self.unembedding[tokens].mT

    def _check(self, tokens: Int[Tensor, "batch length"]) -> None:
        """Raise ValueError for tokens that a GPT-2 or a Pythia cannot read, as a Llama does."""
        if not 1 <= tokens.shape[1] <= self.context:
            raise ValueError(f"tokens of shape {tuple(tokens.shape)}: length must be 1 to {self.context}")
        check_range(tokens=(tokens, len(self.unembedding)))

    def _look_into_llama(self, model: Llama) -> None:
        self.model, self.at, self.norm = model, model.at, model.norm
        self.layers, self.heads, self.context = model.config.layers, model.config.heads, model.config.context
        self.inputs = [block.get_parameter("mlp.gate_and_up.weight") for block in model.blocks]
        self.outputs = [block.get_parameter("attention.out.weight").mT for block in model.blocks]
        self.unembedding = model.unembedding

    def _look_into_theirs(self, model: "PreTrainedModel") -> None:
        """Find the parts of a GPT-2 or a Pythia, and put hooks on them."""
        self.model, (body, unembed) = model, model.children()
        self.heads, self.context = model.config.num_attention_heads, model.config.max_position_embeddings
        self.unembedding = unembed.get_parameter("weight")
        layers, norm, names = THEIRS[self.kind]
        self.norm = known_norm(body.get_submodule(norm))
        parts = [[layer.get_submodule(name) for name in names] for layer in body.get_submodule(layers).children()]
        self.layers, self.inputs = len(parts), [first.get_parameter("weight") for *_, first in parts]
        outputs = [out.get_parameter("weight") for _, out, *_ in parts]
        self.outputs = outputs if self.kind == "gpt2" else [weight.mT for weight in outputs]
        prefixes = [f"blocks.{layer}." for layer in range(self.layers)]
        self.at = HookPoints(prefix + n for prefix in prefixes for n in ("attn.hook_v", "attn.hook_z", "hook_mlp_out"))
        for prefix, (qkv, out, mlp, _) in zip(prefixes, parts, strict=True):
            qkv.register_forward_hook(self._values(prefix + "attn.hook_v"))
            out.register_forward_pre_hook(self._heads(prefix + "attn.hook_z"))
            mlp.register_forward_hook(self._whole(prefix + "hook_mlp_out"))

    def _whole(self, name: str):
        """A forward hook on what hands its value to the stream as it is."""

        def hook(_, __, value):
            return self.at(name, value)

        return hook

    def _values(self, name: str):
        """A forward hook on the map to queries, keys and values: all queries first in GPT-2, head by head in NeoX."""
        kinds_first = self.kind == "gpt2"

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


def _check_memory(folder: Path, dtype: torch.dtype) -> None:
    """Raise PretrainedError where the weights in this precision would not fit, before any of them is read."""
    files = tensor_files(folder)
    entries = 0
    for path in set(files.values()):
        with opened(path) as file:
            entries += sum(prod(file.get_slice(name).get_shape()) for name in file.keys())
    needed, free = entries * dtype.itemsize + WORKING, free_memory()
    if free < needed:
        half = "" if dtype.itemsize < 4 else "; with dtype=torch.bfloat16 it needs about half"
        raise PretrainedError(
            f"{folder}: needs {needed / 1e6:.0f} MB of memory, and {free / 1e6:.0f} MB are free; shut down other "
            f"kernels (in JupyterLab: Kernel, Shut Down All Kernels){half}"
        )


def by_transformers(folder: Path) -> "PreTrainedModel":
    """Read a language model as ``transformers`` does. Raises PretrainedError for a folder that it cannot read.

    Of that library its parts are imported: of the whole, a type checker reads every model.
    """
    with Extra("pretrained"):  # not above: it takes seconds, which `numbers` should not wait for
        from transformers.models.auto.modeling_auto import AutoModelForCausalLM  # noqa: PLC0415
        from transformers.utils import logging  # noqa: PLC0415
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    _embedding(folder)  # names a missing or damaged file better than the library does
    try:
        return AutoModelForCausalLM.from_pretrained(
            folder, local_files_only=True, use_safetensors=True, attn_implementation="eager"
        )
    except Exception as error:  # many classes, for a config or weights that do not fit
        reason = str(error).strip().splitlines()[0]
        raise PretrainedError(f"{folder}: cannot be read as a language model ({reason})") from None


def _single_tokens(tokenizer: "Tokenizer", before: str, most: int | None) -> dict[str, int]:
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
    files = tensor_files(folder)
    for name in EMBEDDINGS:
        if name in files:
            return files[name], name
    raise PretrainedError(
        f"{folder}: no input embedding among its {len(files)} tensors; must be named {' or '.join(EMBEDDINGS)}"
    )
