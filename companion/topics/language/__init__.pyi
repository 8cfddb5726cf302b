from companion.topics.language import by_hand as by_hand
from companion.topics.language import data as data
from companion.topics.language import probes as probes
