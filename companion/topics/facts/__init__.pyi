from companion.topics.facts import by_hand as by_hand
from companion.topics.facts import data as data
from companion.topics.facts import model as model
from companion.topics.facts import probes as probes
