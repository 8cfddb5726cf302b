from companion.topics.calibration import baselines as baselines
from companion.topics.calibration import data as data
from companion.topics.calibration import model as model
from companion.topics.calibration import probes as probes
