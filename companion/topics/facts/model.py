"""What recalls facts in lesson 07: one layer of attention from the last word and an MLP, many models side by side in
one tensor.

Nichani, Lee, Bietti (2024), arXiv:2412.06538, section 4: word embeddings and answer embeddings are random and stay as
they are; the heads' width is free of the embeddings' dimension. Here the MLP is a ReLU without biases (the
end-of-sentence word serves as one), and the query is a vector of its own, because the last word always is the same.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from companion.core.arguments import at_least, check_range
from companion.core.hooks import Hooked, HookPoints

BANK_HOOKS = (
    "hook_embed",
    "blocks.0.attn.hook_pattern",
    "blocks.0.hook_resid_pre",
    "blocks.0.hook_attn_out",
    "blocks.0.hook_resid_mid",
    "blocks.0.mlp.hook_post",
    "blocks.0.hook_mlp_out",
    "blocks.0.hook_resid_post",
)


@dataclass(frozen=True)
class Member:
    """The sizes of one model, and of the part of the world that it is asked about."""

    d: int
    heads: int
    head_width: int
    mlp: int
    subjects: int
    relations: int

    def __post_init__(self):
        at_least(**{name: (value, 0 if name == "mlp" else 1) for name, value in vars(self).items()})

    @property
    def parameters(self) -> int:
        """Trained numbers: keys, values and outputs of the heads with their queries, and the MLP."""
        return self.heads * self.head_width * (3 * self.d + 1) + 2 * self.d * self.mlp


@dataclass(frozen=True)
class BankConfig:
    """Models side by side; each relation has ``answers`` answers, sentences have ``length`` words, some of them of
    ``noise``.
    """

    members: tuple[Member, ...]
    answers: int
    noise: int
    length: int

    def largest(self, name: str) -> int:
        """Return the largest of a size among the members."""
        return max(getattr(member, name) for member in self.members)


class Bank(Hooked):
    """x = e_end + sum_h W_O^h W_V^h sum_t softmax_t(q_h . W_K^h e_t) e_t, then x + D relu(U x), read by the answers'
    embeddings.

    Its values have a decoder's names, with a member axis in front; attention has one query, the last word, so that
    ``blocks.0.attn.hook_pattern`` is (member, batch, head, key), and ``hook_resid_pre`` is what that word brings along.

    Smaller members are filled up with zeros. They stay zero in training: each is multiplied by another zero.
    """

    def __init__(self, config: BankConfig):
        super().__init__()
        self.config, self.at = config, HookPoints(BANK_HOOKS)
        K, d, H, h, m = len(config.members), *map(config.largest, ("d", "heads", "head_width", "mlp"))
        words = config.largest("subjects") + config.largest("relations") + config.noise + 1
        self.register_buffer("words", torch.zeros(K, words, d))
        self.register_buffer("answers", torch.zeros(K, config.largest("relations") * config.answers, d))
        self.query = nn.Parameter(torch.zeros(K, H, h))
        self.key, self.value = (nn.Parameter(torch.zeros(K, H, h, d)) for _ in range(2))
        self.out = nn.Parameter(torch.zeros(K, H, d, h))
        self.up, self.down = nn.Parameter(torch.zeros(K, m, d)), nn.Parameter(torch.zeros(K, d, m))
        for k, member in enumerate(config.members):
            self._fill(k, member)

    def _fill(self, k: int, member: Member) -> None:
        d, H, h, m = member.d, member.heads, member.head_width, member.mlp
        for table in (self.words, self.answers):
            table[k, :, :d] = torch.randn(table.shape[1], d) / d**0.5
        with torch.no_grad():
            self.query[k, :H, :h] = torch.randn(H, h) / h**0.5
            self.key[k, :H, :h, :d] = torch.randn(H, h, d) / d**0.5
            self.value[k, :H, :h, :d] = torch.randn(H, h, d) / d**0.5
            self.out[k, :H, :d, :h] = torch.randn(H, d, h) / (H * h) ** 0.5
            self.up[k, :m, :d] = torch.randn(m, d) / d**0.5
            self.down[k, :d, :m] = torch.randn(d, m) / max(m, 1) ** 0.5

    def forward(self, tokens: Int[Tensor, "members batch length"]) -> Float[Tensor, "members batch answers"]:
        """Compute every answer's logit. Raises ValueError for unknown words, or sentences for another number of
        members.
        """
        members, words, _ = self.words.shape
        if len(tokens) != members:
            raise ValueError(f"tokens of shape {tuple(tokens.shape)}: must begin with {members}, the number of members")
        check_range(tokens=(tokens, words))
        at = self.at
        own = torch.arange(members)[:, None, None]
        scores = torch.einsum("kvd,khcd,khc->kvh", self.words, self.key, self.query)  # of each word, for each head
        words = at("hook_embed", self.words[own, tokens])  # (member, batch, length, d)
        pattern = at("blocks.0.attn.hook_pattern", scores[own, tokens].softmax(2).mT)  # (member, batch, head, key)
        seen = pattern @ words  # (member, batch, head, d)
        attention = torch.einsum("khec,khcd,kbhd->kbe", self.out, self.value, seen)
        x = at("blocks.0.hook_resid_pre", words[:, :, -1]) + at("blocks.0.hook_attn_out", attention)
        x = at("blocks.0.hook_resid_mid", x)
        hidden = at("blocks.0.mlp.hook_post", (x @ self.up.mT).relu())  # (member, batch, mlp)
        x = at("blocks.0.hook_resid_post", x + at("blocks.0.hook_mlp_out", hidden @ self.down.mT))
        return x @ self.answers.mT
