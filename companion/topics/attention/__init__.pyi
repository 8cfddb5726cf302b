from companion.topics.attention import baselines as baselines
from companion.topics.attention import by_hand as by_hand
from companion.topics.attention import data as data
from companion.topics.attention import model as model
from companion.topics.attention import probes as probes
