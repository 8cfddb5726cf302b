"""Answers to the exercises of lessons 02 and 03: wrong ones that people really give, and right ones written
differently.
"""

from wrong_answers.regression import in_context, recurrent, spectra

CASES = in_context.CASES | recurrent.CASES | spectra.CASES
