from companion.topics.layers import probes as probes
