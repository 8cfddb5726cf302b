"""Near misses: the functions one step away from an exercise's answer, made from its source, each with what it gets wrong
in words.

A wrong answer that behaves like one of them, on the input where it failed and on others, has made that mistake, whether
or not anybody foresaw it. See the README beside this file.
"""
