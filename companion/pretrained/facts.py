"""What SmolLM2 is asked of countries and of other things: facts, as everybody knows them."""

from companion.topics.facts.examined import CAPITALS, PROMPT
from companion.topics.language.data import RELATIONS, known_facts

ALL_CAPITALS = CAPITALS | {
    "Egypt": "Cairo",
    "Ireland": "Dublin",
    "Hungary": "Budapest",
    "Peru": "Lima",
    "Kenya": "Nairobi",
    "Thailand": "Bangkok",
    "South Korea": "Seoul",
}
FIRST_CITIES = {
    city: country.removeprefix("South ")
    for country, city in ALL_CAPITALS.items()
    if country not in ("China", "Iran", "England")
}
SECOND_CITIES = (
    "Helsinki Finland, Munich Germany, Milan Italy, Barcelona Spain, Lyon France, Kyoto Japan, Mumbai India, "
    "Toronto Canada, Sydney Australia, Shanghai China, Tehran Iran, London England, Brussels Belgium, "
    "Copenhagen Denmark, Geneva Switzerland, Istanbul Turkey, Baghdad Iraq, Jakarta Indonesia, Hanoi Vietnam, "
    "Edinburgh Scotland"
)
CITIES = (FIRST_CITIES, known_facts(SECOND_CITIES))  # of seeds 0 and 1
PLACE = "{} is located in"
NOUNS = ["table", "dog", "water", "book", "house", "tree", "chair", "bread", "window", "car"]  # that are no places
ALL_RELATIONS = {"capital": (PROMPT, CAPITALS)} | RELATIONS
