from companion.topics.layers import data as data
from companion.topics.layers import probes as probes
