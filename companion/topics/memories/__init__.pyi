from companion.topics.memories import baselines as baselines
from companion.topics.memories import by_hand as by_hand
from companion.topics.memories import data as data
from companion.topics.memories import model as model
from companion.topics.memories import probes as probes
