"""Checkpoints that others trained, in a local folder: `language` reads language models in Hugging Face's layout,
`regression` the in-context regressors of Garg et al. Nothing is ever downloaded, and no pickle's code is run.
"""
