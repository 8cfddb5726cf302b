"""A tiny GPT-2 in Hugging Face's layout, whose number embeddings are waves of periods that the tests know."""

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor

NUMBERS, WIDTH = 200, 32
AMPLITUDES = {10: 1.0, 5: 0.6, 2: 0.4, 2.5: 0.3}


def tokenizer(*, space: str = "Ġ", numbers: int = NUMBERS) -> Tokenizer:
    """GPT-2's kind, byte-level BPE: 0 to ``numbers`` - 1 are one token each, with the space before them, or (``space``
    = "") without it.
    """
    vocabulary, merges = {token: i for i, token in enumerate(["<|endoftext|>", *"0123456789", "Ġ"])}, []
    for word in (f"{space}{number}" for number in range(numbers)):
        vocabulary.setdefault(word, len(vocabulary))
        merges += [(word[:i], word[i:]) for i in range(1, len(word)) if word[i:] in vocabulary]
    made = Tokenizer(models.BPE(vocabulary, merges))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    return made


def planted(numbers: int = NUMBERS) -> Tensor:
    """(numbers, width) in float32: a wave of each of ``AMPLITUDES`` in directions of its own, and noise of standard
    deviation 0.05.
    """
    generator = torch.Generator().manual_seed(0)
    x = torch.arange(numbers)[:, None]
    angles = 2 * torch.pi * x / torch.tensor(list(AMPLITUDES))
    waves = torch.cat([angles.cos(), angles.sin()], 1) * torch.tensor([*AMPLITUDES.values()] * 2)
    directions = torch.linalg.qr(torch.randn(WIDTH, waves.shape[1], generator=generator)).Q
    return waves @ directions.mT + 0.05 * torch.randn(numbers, WIDTH, generator=generator)


def save_tiny_gpt2(folder: Path, *, head: bool = False, **options) -> Path:
    """``transformers``' own GPT-2, with its language-model ``head`` or without, saved with ``options`` of its
    ``save_pretrained``.
    """
    from transformers import GPT2Config, GPT2LMHeadModel, GPT2Model

    made = tokenizer()
    config = GPT2Config(
        vocab_size=made.get_vocab_size(),
        n_positions=8,
        n_embd=WIDTH,
        n_layer=1,
        n_head=2,
        bos_token_id=0,
        eos_token_id=0,
    )
    model = (GPT2LMHeadModel if head else GPT2Model)(config)
    with torch.no_grad():
        ids = [made.token_to_id(f"Ġ{number}") for number in range(NUMBERS)]
        model.get_input_embeddings().weight[ids] = planted()
    model.save_pretrained(folder, **options)
    made.save(str(folder / "tokenizer.json"))
    return folder


def rewrite(path: Path, change) -> None:
    """Let ``change`` map the tensors of a safetensors file to others; their names keep the order."""
    save_file({name: tensor.contiguous() for name, tensor in change(load_file(path)).items()}, path)
