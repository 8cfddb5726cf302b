"""The language model of a lesson: one that others trained, or a small random one in its place."""

import re
from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from companion import SCALES
from companion.core.hooks import Hooked
from companion.core.llama import Llama, LlamaConfig
from companion.pretrained.folder import PretrainedError
from companion.pretrained.language import LanguageModel

SMALL = {  # of each model that can be fetched: its layers and heads, so that a lesson finds the heads that it names
    "smollm2": LlamaConfig(
        vocabulary=4096, width=72, layers=30, heads=9, key_heads=3, hidden=96, context=1024, base=100_000.0
    ),
}
WORDS = re.compile(r" ?[^\W\d]+|\d| ?[^\s\w]+|\s")  # as real models mostly cut simple texts


def language_model(name: str, scale: str) -> LanguageModel:
    """Return a lesson's language model: that of this name, or in its place a `RandomModel`, which is not ``trained``.

    >>> model = language_model("smollm2", SCALE)
    >>> shares = measured(model) if model.trained else stored

    At "smoke" it is the random one, which needs no file. So it is where the other is not on this machine or cannot be
    read, after a sentence that says what to do: the lesson goes on to its end, with stored figures in place of its own.

    ``name``: of a model that ``python -m companion fetch`` brings.
    ``scale``: the lesson's SCALE: smoke, course or paper.

    Raises ValueError for another name, and for another scale.
    """
    if name not in SMALL:
        raise ValueError(f"name = {name!r}: must be {' or '.join(map(repr, SMALL))}")
    if scale not in SCALES:
        raise ValueError(f"scale = {scale!r}: must be one of {', '.join(SCALES)}")
    if scale != "smoke":
        try:
            return LanguageModel(name)
        except PretrainedError as error:
            print(
                f"{error}. Until then a small random model stands in: figures that are computed of it mean nothing, "
                "stored ones do."
            )
    return RandomModel(SMALL[name])


class RandomModel(LanguageModel):
    """A Llama that nobody trained, with all that a lesson asks a `LanguageModel` for; of one seed always the same one.

    Its tokens are whole words, with the space before them, single digits and signs, numbered as they come: so a text
    has about as many tokens as for a model that others trained, and any word is one.
    """

    trained = False

    def __init__(self, config: LlamaConfig, seed: int = 0):
        Hooked.__init__(self)  # no folder is read
        self.kind, self.tokens, self.words = "llama", config.vocabulary, {}
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            self._look_into_llama(Llama(config))
        self.requires_grad_(False)
        self.eval()

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text. Beyond so many words as there are tokens, new ones share those of others."""
        return [self.words.setdefault(word, len(self.words) % self.tokens) for word in WORDS.findall(text)]

    def decode(self, tokens: Int[Tensor, "length"] | Sequence[int]) -> str:
        """Return the text of tokens; of one that no text had yet, its number."""
        texts = {token: word for word, token in self.words.items()}
        return "".join(texts.get(int(token), f" <{int(token)}>") for token in tokens)
