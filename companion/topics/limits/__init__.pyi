from companion.topics.limits import baselines as baselines
from companion.topics.limits import by_hand as by_hand
from companion.topics.limits import data as data
from companion.topics.limits import model as model
from companion.topics.limits import probes as probes
