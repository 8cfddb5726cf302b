"""``induction``: lesson 06's probes on a GPT-2 or a Pythia in a local folder: which heads are induction heads, what the
best one is worth, and which MLP holds the global bigram.
"""

from argparse import Namespace
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from matplotlib.figure import Figure
from torch import Tensor

from companion.cli.figurefile import figure_file, keep
from companion.figures import COLORS, png, use_house_style
from companion.pretrained import LanguageModel, PretrainedError
from companion.probes.bigrams import copying, prefix_matching, truncated

TEXTS, PERIOD = 8, 50  # as many random texts, of as many tokens said twice
STRONGEST, OTHERS = 8, 8
SHARE = 0.1  # of the singular values of an MLP's first matrix that a cut leaves
GLOBAL = " the"  # what follows "in" in any text
PLACES = {  # Chen, Bruna and Bietti (2024) ask Pythia about Madrid
    "Madrid is located in": " Spain",
    "Paris is located in": " France",
    "Tokyo is located in": " Japan",
    "Cairo is located in": " Egypt",
    "Oslo is located in": " Norway",
}


class Heads(NamedTuple):
    """Scores of each head; what the model loses on tokens said for the first time and for the second."""

    prefix: Float[Tensor, "layers heads"]
    copied: Float[Tensor, "layers heads"]
    first: float
    second: float


def main(arguments: Namespace) -> int:
    """Print scores, ablations and the global bigram's place; draw the scores if ``arguments.out`` says where."""
    try:
        out = figure_file(arguments.out)
        model = LanguageModel(arguments.folder)
        texts = repeated(model)
    except ValueError as error:
        print(f"induction: {error}")
        return 2
    with torch.no_grad():
        heads = score(model, texts)
        print(f"{arguments.folder}: {model.layers} layers of {model.heads} heads")
        print(heads_report(heads))
        print(ablation_report(model, texts, heads))
        print(places_report(model))
    return 0 if out is None else keep("induction", "The scores are", out, picture(heads))


def repeated(model: LanguageModel) -> Int[Tensor, "texts length"]:
    """Random tokens said twice, after the token for the beginning of a text if there is one.

    Raises PretrainedError for a context that is too short to repeat anything.
    """
    period = min(PERIOD, (model.context - 1) // 2)
    if period < 2:
        raise PretrainedError(f"context = {model.context}: too short to say two tokens twice")
    drawn = torch.randint(model.tokens, (TEXTS, period), generator=torch.Generator().manual_seed(0))
    begin = model.tokenizer.token_to_id("<|endoftext|>")
    return torch.cat([drawn.new_full((TEXTS, begin is not None), begin or 0), drawn, drawn], 1)


def period_of(texts: Int[Tensor, "texts length"]) -> int:
    """How many tokens are said twice."""
    return texts.shape[1] // 2


def losses(model: LanguageModel, texts: Int[Tensor, "texts length"]) -> tuple[float, float]:
    """The mean loss on the tokens said for the first time and for the second, but for the first of each."""
    each = F.cross_entropy(model(texts[:, :-1]).mT, texts[:, 1:], reduction="none")
    period = period_of(texts)
    return each[:, -2 * period + 1 : -period].mean().item(), each[:, -period + 1 :].mean().item()


def score(model: LanguageModel, texts: Int[Tensor, "texts length"]) -> Heads:
    """Prefix matching and copying of every head."""
    prefix = torch.stack([prefix_matching(pattern, period_of(texts)) for pattern in model.patterns(texts)])
    names = [f"blocks.{layer}.attn.hook_v" for layer in range(model.layers)]
    _, values = model.run_with_cache(texts, names=names)
    candidates, own = texts.unique(return_inverse=True)
    copied = [copying(model.direct(layer, values[name], candidates), own) for layer, name in enumerate(names)]
    return Heads(prefix, torch.stack(copied), *losses(model, texts))


def loss_without(model: LanguageModel, texts: Int[Tensor, "texts length"], layer: int, head: int) -> float:
    """The loss on what is said for the second time, with one head's output replaced by its mean.

    ``model``, ``texts``: what reads, and what is read.
    ``layer``, ``head``: which head, counted from 0.
    """

    def mean(z: Tensor, _: str) -> Tensor:
        z = z.clone()
        z[:, head] = z[:, head].mean((0, 1))
        return z

    with model.hooks({f"blocks.{layer}.attn.hook_z": mean}):
        return losses(model, texts)[1]


def heads_report(heads: Heads) -> str:
    """The heads that match prefixes best, as lines."""
    order = heads.prefix.flatten().argsort(descending=True)[:STRONGEST].tolist()
    width = heads.prefix.shape[1]
    lines = [
        f"\nRandom tokens said twice: loss {heads.first:.2f} the first time, {heads.second:.2f} the second",
        f"{'head':>9} {'prefix matching':>16} {'copying':>8}",
    ]
    lines += [
        f"{f'{at // width}.{at % width}':>9} {heads.prefix.flatten()[at]:16.2f} {heads.copied.flatten()[at]:8.2f}"
        for at in order
    ]
    return "\n".join([*lines, f"{'median':>9} {heads.prefix.median():16.2f} {heads.copied.median():8.2f}"])


def ablation_report(model: LanguageModel, texts: Int[Tensor, "texts length"], heads: Heads) -> str:
    """The best head taken out, beside others of its layer, drawn at random."""
    layer, best = divmod(int(heads.prefix.argmax()), model.heads)
    drawn = torch.randperm(model.heads, generator=torch.Generator().manual_seed(0)).tolist()
    others = [head for head in drawn if head != best][:OTHERS]
    lines = [f"\nOne head of layer {layer} taken out: what the second time then costs more"]
    lines.append(f"{f'{layer}.{best}':>9} {loss_without(model, texts, layer, best) - heads.second:+8.3f}")
    if others:
        costs = torch.tensor([loss_without(model, texts, layer, head) - heads.second for head in others])
        lines.append(
            f"{'others':>9} {costs.mean():+8.3f} on average, {costs.max():+.3f} at most, of {len(others)} at random"
        )
    return "\n".join(lines)


def places_report(model: LanguageModel) -> str:
    """p(the) and p(Spain) after "Madrid is located in", with each MLP's first matrix cut in turn."""
    singles = [
        (model.encode(text), answer[0])
        for text, word in PLACES.items()
        if len(answer := model.encode(word)) == 1 and model.tokenizer.decode(answer).strip() == word.strip()
    ]
    rival = model.encode(GLOBAL)
    if not singles or len(rival) != 1 or model.tokenizer.decode(rival).strip() != GLOBAL.strip():
        return "\nGlobal against in-context: its tokenizer has no single tokens for the words that would compete"

    def said() -> str:
        likely = [(model(torch.tensor([tokens]))[0, -1].softmax(-1), answer) for tokens, answer in singles]
        shares = torch.tensor([[p[rival[0]], p[answer]] for p, answer in likely]).mean(0)
        return f"{shares[0]:8.3f} {shares[1]:12.3f}"

    lines = [
        f'\n"Madrid is located in" and its like ({len(singles)}), with {SHARE:.0%} of an MLP\'s first matrix left',
        f"{'cut in':>9} {'p(the)':>8} {'p(country)':>12}",
        f"{'nowhere':>9} {said()}",
    ]
    for layer, matrix in enumerate(model.inputs):
        whole = matrix.clone()
        matrix.copy_(truncated(matrix, SHARE))
        lines.append(f"{f'layer {layer}':>9} {said()}")
        matrix.copy_(whole)
    return "\n".join(lines)


def picture(heads: Heads) -> bytes:
    """Every head by its two scores, as a PNG, with the best ones named."""
    use_house_style()
    figure = Figure(figsize=(6, 4.5), dpi=150)
    ax = figure.subplots()
    ax.scatter(heads.prefix.flatten(), heads.copied.flatten(), s=14, color=COLORS["transformer"])
    width = heads.prefix.shape[1]
    for at in heads.prefix.flatten().argsort(descending=True)[:STRONGEST].tolist():
        place = (heads.prefix.flatten()[at].item(), heads.copied.flatten()[at].item())
        ax.annotate(f"{at // width}.{at % width}", place, xytext=(4, 3), textcoords="offset points", fontsize="small")
    ax.set(xlabel="prefix matching", ylabel="copying", xlim=(-0.03, 1.05), ylim=(-0.03, 1.05))
    layer, best = divmod(int(heads.prefix.argmax()), width)
    ax.set_title(f"Head {layer}.{best} looks after the earlier occurrence {heads.prefix.max():.0%} of the time")
    return png(figure)
