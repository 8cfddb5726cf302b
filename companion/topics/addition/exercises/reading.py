"""Exercises of lesson 04 on a stream that is a sum: what it says after each module, and each module"s share."""

import torch
from torch import Generator, Tensor

from companion.lesson.exercise import Exercise, draw_normal, draw_size

__all__ = ["logit_lens", "share_of_logits"]


# -- share_of_logits


def _draw_parts(generator: Generator) -> dict:
    modules, width, answers = draw_size(generator, 3, 5), draw_size(generator, 5, 8), draw_size(generator, 4, 7)
    # as small as this eps shows, and as far from mean 0 the centring does
    parts = 0.1 + 0.1 * draw_normal(generator, modules, width)
    return {
        "parts": parts,
        "stream": parts.sum(0),
        "weight": 1 + 0.5 * draw_normal(generator, width),
        "bias": draw_normal(generator, width),
        "unembedding": draw_normal(generator, answers, width),
    }


def _centred(x: Tensor) -> Tensor:
    return x - x.mean(-1, keepdim=True)


def _scale(x: Tensor, correction: int = 0) -> Tensor:
    return (x.var(-1, correction=correction, keepdim=True) + 1e-5).sqrt()


def _read(normed: Tensor, weight: Tensor | float, bias: Tensor | float, unembedding: Tensor) -> Tensor:
    """Parts of a normed stream as logits; the bias goes to the first."""
    first = torch.zeros_like(normed)
    first[0] = 1
    return (normed * weight + first * bias) @ unembedding.mT


def _share_of_logits(parts: Tensor, stream: Tensor, weight: Tensor, bias: Tensor, unembedding: Tensor) -> Tensor:
    scale = (stream.var(unbiased=False) + 1e-5).sqrt()
    normed = (parts - parts.mean(1, keepdim=True)) / scale
    shift = torch.zeros_like(parts)
    shift[0] = bias
    return (normed * weight + shift) @ unembedding.mT


share_of_logits = Exercise(
    name="share_of_logits",
    answer=_share_of_logits,
    draw=_draw_parts,
    mistakes={
        "each part is divided by its own standard deviation; the norm divides the whole stream by one number": (
            lambda parts, stream, weight, bias, unembedding: _read(
                _centred(parts) / _scale(parts), weight, bias, unembedding
            )
        ),
        "the parts are not centred: take each part's own mean away": (
            lambda parts, stream, weight, bias, unembedding: _read(parts / _scale(stream), weight, bias, unembedding)
        ),
        "the stream's mean is taken from each part; each has a mean of its own, and these sum to the stream's": (
            lambda parts, stream, weight, bias, unembedding: _read(
                (parts - stream.mean()) / _scale(stream), weight, bias, unembedding
            )
        ),
        "the norm's weight is missing": lambda parts, stream, weight, bias, unembedding: _read(
            _centred(parts) / _scale(stream), 1.0, bias, unembedding
        ),
        "the norm's bias is missing, so that the shares do not sum to the logits": (
            lambda parts, stream, weight, bias, unembedding: _read(
                _centred(parts) / _scale(stream), weight, 0.0, unembedding
            )
        ),
        "the bias is added to every part; the norm adds it once, give it to the first": (
            lambda parts, stream, weight, bias, unembedding: (
                (_centred(parts) / _scale(stream) * weight + bias) @ unembedding.mT
            )
        ),
        "the bias is split over the parts; it goes to the first": (
            lambda parts, stream, weight, bias, unembedding: (
                (_centred(parts) / _scale(stream) * weight + bias / len(parts)) @ unembedding.mT
            )
        ),
        "the bias is multiplied by the weight; the norm adds it after": (
            lambda parts, stream, weight, bias, unembedding: _read(
                _centred(parts) / _scale(stream), weight, weight * bias, unembedding
            )
        ),
        "the variance is divided by width - 1; a layer norm divides by width (unbiased=False)": (
            lambda parts, stream, weight, bias, unembedding: _read(
                _centred(parts) / _scale(stream, 1), weight, bias, unembedding
            )
        ),
        "divides by the variance; divide by its square root": (
            lambda parts, stream, weight, bias, unembedding: _read(
                _centred(parts) / _scale(stream) ** 2, weight, bias, unembedding
            )
        ),
        "divides by the stream's root mean square; a layer norm takes the mean away first": (
            lambda parts, stream, weight, bias, unembedding: _read(
                _centred(parts) / (stream.square().mean() + 1e-5).sqrt(), weight, bias, unembedding
            )
        ),
        "eps = 1e-5 is missing under the root": lambda parts, stream, weight, bias, unembedding: _read(
            _centred(parts) / stream.std(correction=0), weight, bias, unembedding
        ),
        "eps is added to the standard deviation; it belongs to the variance, under the root": (
            lambda parts, stream, weight, bias, unembedding: _read(
                _centred(parts) / (stream.std(correction=0) + 1e-5), weight, bias, unembedding
            )
        ),
    },
)


# -- logit_lens


def _draw_streams(generator: Generator) -> dict:
    modules, problems = draw_size(generator, 3, 5), draw_size(generator, 2, 4)
    width, answers = draw_size(generator, 5, 8), draw_size(generator, 4, 7)
    # as small as this eps shows, and as far from mean 0 the centring does
    return {
        "parts": 0.05 + 0.1 * draw_normal(generator, modules, problems, width),
        "weight": 1 + 0.5 * draw_normal(generator, width),
        "bias": draw_normal(generator, width),
        "unembedding": draw_normal(generator, answers, width),
    }


def _looked(parts: Tensor, weight: Tensor | float, bias: Tensor | float, unembedding: Tensor) -> Tensor:
    """What each of the parts says, taken for a stream."""
    return (_centred(parts) / _scale(parts) * weight + bias) @ unembedding.mT


def _logit_lens(parts: Tensor, weight: Tensor, bias: Tensor, unembedding: Tensor) -> Tensor:
    streams = parts.cumsum(0)
    centred = streams - streams.mean(-1, keepdim=True)
    scale = (streams.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt()
    return (centred / scale * weight + bias) @ unembedding.mT


logit_lens = Exercise(
    name="logit_lens",
    answer=_logit_lens,
    draw=_draw_streams,
    mistakes={
        "each module is read alone; the stream after a module is the sum of all parts up to it": _looked,
        "every module gets the last stream; after a module only the parts up to it are there": (
            lambda parts, weight, bias, unembedding: _looked(
                parts.sum(0, keepdim=True).expand_as(parts), weight, bias, unembedding
            )
        ),
        "the parts are added along the problems; they add up along the modules, dimension 0": (
            lambda parts, weight, bias, unembedding: _looked(parts.cumsum(1), weight, bias, unembedding)
        ),
        "the module's own part is left out of its stream": (
            lambda parts, weight, bias, unembedding: _looked(parts.cumsum(0) - parts, weight, bias, unembedding)
        ),
        "the parts are added from the last back; the stream begins with the first": (
            lambda parts, weight, bias, unembedding: _looked(parts.flip(0).cumsum(0).flip(0), weight, bias, unembedding)
        ),
        "the mean over the parts; a stream is their sum": lambda parts, weight, bias, unembedding: _looked(
            parts.cumsum(0) / torch.arange(1, len(parts) + 1)[:, None, None], weight, bias, unembedding
        ),
        "the norm is missing: centre each stream, divide it by its standard deviation, then weight and bias": (
            lambda parts, weight, bias, unembedding: parts.cumsum(0) @ unembedding.mT
        ),
        "all streams are divided by the last one's standard deviation; each has its own": (
            lambda parts, weight, bias, unembedding: (
                (_centred(parts.cumsum(0)) / _scale(parts.sum(0)) * weight + bias) @ unembedding.mT
            )
        ),
        "the streams are not centred": lambda parts, weight, bias, unembedding: (
            (parts.cumsum(0) / _scale(parts.cumsum(0)) * weight + bias) @ unembedding.mT
        ),
        "the norm's weight is missing": lambda parts, weight, bias, unembedding: _looked(
            parts.cumsum(0), 1.0, bias, unembedding
        ),
        "the norm's bias is missing": lambda parts, weight, bias, unembedding: _looked(
            parts.cumsum(0), weight, 0.0, unembedding
        ),
        "the bias is multiplied by the weight; the norm adds it after": lambda parts, weight, bias, unembedding: (
            _looked(parts.cumsum(0), weight, weight * bias, unembedding)
        ),
        "the variance is divided by width - 1; a layer norm divides by width (unbiased=False)": (
            lambda parts, weight, bias, unembedding: (
                (_centred(parts.cumsum(0)) / _scale(parts.cumsum(0), 1) * weight + bias) @ unembedding.mT
            )
        ),
    },
)
