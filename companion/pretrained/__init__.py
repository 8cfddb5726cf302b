"""Checkpoints that others trained, in a local folder: `language` reads language models in Hugging Face's layout,
`regression` the in-context regressors of Garg et al. Nothing is ever downloaded, and no pickle's code is run.
"""

from companion.pretrained.language import (
    LanguageModel,
    PretrainedError,
    number_embeddings,
    number_tokens,
    token_embeddings,
)
from companion.pretrained.regression import published_regressor

__all__ = [
    "LanguageModel",
    "PretrainedError",
    "number_embeddings",
    "number_tokens",
    "published_regressor",
    "token_embeddings",
]
