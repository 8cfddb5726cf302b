"""Models that others trained. `fetching` brings one onto this machine when it is asked to, `conversion` lays it out as
Hugging Face does; `language` reads language models of that layout, `regression` the in-context regressors of Garg et
al., both from a local folder: they download nothing, and no pickle's code is run.
"""
