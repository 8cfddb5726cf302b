"""What hand-built attention heads are compared with: the same look-ups as loops over a list of tokens."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from companion.core.arguments import at_least, check_range


def shares(tokens: Int[Tensor, "length"], vocabulary: int) -> Float[Tensor, "length vocabulary"]:
    """Row t: how often each token has occurred up to and including t, as a share: 1/(t + 1) sum_{s <= t} 1{z_s = j}.

    What a head with equal scores copies (`broad_head`). Raises ValueError for a token outside 0 .. vocabulary - 1.
    """
    check_range(tokens=(tokens, vocabulary))
    counts = torch.nn.functional.one_hot(tokens, vocabulary).double().cumsum(0)
    return counts / counts.sum(1, keepdim=True)


def ngram(tokens: Int[Tensor, "length"], vocabulary: int, n: int = 2) -> Float[Tensor, "length vocabulary"]:
    """Row t: of the earlier places where the last n - 1 tokens were those at t, the share of each token that followed;
    NaN without any.

    n = 2 is the in-context bigram. Raises ValueError for n < 2, or an unknown token.
    """
    check_range(tokens=(tokens, vocabulary))
    if n < 2:
        raise ValueError(f"n = {n!r}: must be at least 2, a token and what follows it")
    words = tokens.tolist()
    out = torch.full((len(tokens), vocabulary), torch.nan, dtype=torch.float64, device=tokens.device)
    for t in range(n - 2, len(words)):
        context = words[t - n + 2 : t + 1]
        followers = [words[s] for s in range(n - 1, t + 1) if words[s - n + 1 : s] == context]
        if followers:
            out[t] = torch.bincount(torch.tensor(followers), minlength=vocabulary).double() / len(followers)
    return out


def latest(tokens: Int[Tensor, "length"], hops: int = 1) -> Int[Tensor, "length"]:
    """Entry t: the token that followed the latest earlier occurrence of token t; after more ``hops``, the same for that
    token; -1 if none.

    Later hops look up the token that the hop before gave, up to and including position t. Raises ValueError for hops <
    1.
    """
    at_least(hops=(hops, 1))
    words, out = tokens.tolist(), []
    for t, word in enumerate(words):
        found = word
        for _ in range(hops):
            found = next((words[s + 1] for s in range(t - 1, -1, -1) if words[s] == found), -1)
        out.append(found)
    return torch.tensor(out, device=tokens.device)


def backward_hops(tokens: Int[Tensor, "length"], hops: int) -> Int[Tensor, "length"]:
    """Entry t: the place that ``hops`` steps back lead to from t; 0 once there is none, and from 0.

    One step goes to the latest place s <= t (s >= 1) whose predecessor is the token at t, and the next starts from
    there: the k-hop induction heads of Sanford, Hsu, Telgarsky (2024), arXiv:2402.09268, section 4. Raises ValueError
    for hops < 1.
    """
    at_least(hops=(hops, 1))
    words = tokens.tolist()
    step = [next((s for s in range(t, 0, -1) if words[s - 1] == words[t]), 0) for t in range(len(words))]
    places = list(range(len(words)))
    for _ in range(hops):
        places = [step[place] for place in places]
    return torch.tensor(places, device=tokens.device)


def l1_logistic(
    xs: Float[Tensor, "*runs examples bits"],
    ys: Float[Tensor, "*runs examples"],
    strength: Float[Tensor, "*runs"],
    *,
    steps: int = 300,
) -> tuple[Float[Tensor, "*runs bits"], Float[Tensor, "*runs"]]:
    """Weights and bias of logistic regression with an L1 penalty on the weights, many problems at once:

        min_{w, b}  mean_i log(1 + exp(-(2 y_i - 1)(w . x_i + b))) + strength |w|_1

    by accelerated proximal gradient steps (Beck and Teboulle 2009). Needs of the order of log(bits) examples for a rule
    about few of them (Ng 2004). Raises ValueError for steps < 1.

    ``xs``: the inputs, +1 and -1.
    ``ys``: the labels, 0 and 1.
    ``strength``: each problem's weight of the penalty.
    ``steps``: how many proximal steps; of the size that the largest possible curvature, (bits + 1) / 4, allows.
    """
    at_least(steps=(steps, 1))
    bits = xs.shape[-1]
    # the loss is smooth with constant 1/4 (mean |x|^2 + 1)
    step = 4 / (bits + 1)
    w, b = xs.new_zeros(*xs.shape[:-2], bits), xs.new_zeros(xs.shape[:-2])
    ahead_w, ahead_b, inertia = w, b, 1.0
    for _ in range(steps):
        off = ((xs @ ahead_w[..., None])[..., 0] + ahead_b[..., None]).sigmoid() - ys  # (*runs, examples)
        moved = ahead_w - step * (off[..., None, :] @ xs)[..., 0, :] / xs.shape[-2]
        new_w = moved.sign() * (moved.abs() - step * strength[..., None]).clamp_min(0)
        new_b = ahead_b - step * off.mean(-1)
        faster = (1 + (1 + 4 * inertia**2) ** 0.5) / 2
        ahead_w, ahead_b = new_w + (inertia - 1) / faster * (new_w - w), new_b + (inertia - 1) / faster * (new_b - b)
        w, b, inertia = new_w, new_b, faster
    return w, b
