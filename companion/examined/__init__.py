"""The lessons' probes on models that others trained: a function `examine` for each topic that has one."""
