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
MORE_CAPITALS = (  # no two of all begin with the same token, and none is called as its country
    "Finland Helsinki, Denmark Copenhagen, Belgium Brussels, Netherlands Amsterdam, Switzerland Bern, Bulgaria Sofia, "
    "Afghanistan Kabul, India Delhi, Philippines Manila, Australia Canberra, Iraq Baghdad, Syria Damascus, "
    "Canada Ottawa, Jamaica Kingston, Chile Santiago, Argentina Buenos Aires, Scotland Edinburgh, Wales Cardiff, "
    "Iceland Reykjavik, Serbia Belgrade, Bosnia Sarajevo, Albania Tirana, Romania Bucharest, Lithuania Vilnius, "
    "Latvia Riga, Estonia Tallinn, Turkey Ankara, Cyprus Nicosia, Malta Valletta, Azerbaijan Baku, Kazakhstan Astana, "
    "Pakistan Islamabad, Nepal Kathmandu, Indonesia Jakarta, Oman Muscat, Libya Tripoli, Algeria Algiers, "
    "Morocco Rabat, Mali Bamako, Nigeria Abuja, Ghana Accra, Liberia Monrovia, Guinea Conakry, Somalia Mogadishu, "
    "Uganda Kampala, Tanzania Dodoma, Zambia Lusaka, Malawi Lilongwe, Zimbabwe Harare, Mozambique Maputo, "
    "Namibia Windhoek, Botswana Gaborone, Madagascar Antananarivo, Venezuela Caracas, Colombia Bogotá, "
    "Uruguay Montevideo, Brazil Brasília"
)
COUNTRIES = ALL_CAPITALS | known_facts(MORE_CAPITALS)
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
MORE_CAPITALS = (
    "Belgium Brussels, Netherlands Amsterdam, Denmark Copenhagen, Finland Helsinki, Switzerland Bern, "
    "Romania Bucharest, Bulgaria Sofia, Serbia Belgrade, Czechia Prague, Lithuania Vilnius, Latvia Riga, "
    "Estonia Tallinn, Iceland Reykjavik, Albania Tirana, Turkey Ankara, Cyprus Nicosia, Malta Valletta, "
    "Azerbaijan Baku, Kazakhstan Astana, Pakistan Islamabad, Nepal Kathmandu, Afghanistan Kabul, Iraq Baghdad, "
    "Syria Damascus, Israel Jerusalem, Oman Muscat, Indonesia Jakarta, Philippines Manila, Australia Canberra, "
    "Canada Ottawa, Jamaica Kingston, Nicaragua Managua, Venezuela Caracas, Colombia Bogotá, Chile Santiago, "
    "Argentina Buenos Aires, Uruguay Montevideo, Brazil Brasília, Morocco Rabat, Tunisia Tunis, Algeria Algiers, "
    "Libya Tripoli, Somalia Mogadishu, Uganda Kampala, Zambia Lusaka, Zimbabwe Harare, Namibia Windhoek, "
    "Botswana Gaborone, Nigeria Abuja, Ghana Accra, Mali Bamako, Gabon Libreville, Madagascar Antananarivo, "
    "Mauritania Nouakchott, Liberia Monrovia, Malawi Lilongwe, Mozambique Maputo, Scotland Edinburgh, "
    "Taiwan Taipei, Haiti Port-au-Prince, Maldives Malé, Turkmenistan Ashgabat, Moldova Chișinău, "
    "Guyana Georgetown, Suriname Paramaribo, Montenegro Podgorica, Barbados Bridgetown, Gambia Banjul"
)
MORE_LANGUAGES = (
    "Netherlands Dutch, Iceland Icelandic, Romania Romanian, Bulgaria Bulgarian, Serbia Serbian, "
    "Vietnam Vietnamese, Brazil Portuguese, Mexico Spanish, Austria German, Egypt Arabic, Iran Persian, "
    "Ukraine Ukrainian, Indonesia Indonesian, Argentina Spanish, Australia English, Cuba Spanish, "
    "Mongolia Mongolian, Albania Albanian, Czechia Czech"
)
FIRST_GUESSES = {  # two hundred facts, and how each kind is asked for; of an answer the first token counts
    "capital": (PROMPT, ALL_CAPITALS | known_facts(MORE_CAPITALS)),
    "language": (RELATIONS["language"][0], RELATIONS["language"][1] | known_facts(MORE_LANGUAGES)),
    "currency": RELATIONS["currency"],
    "symbol": RELATIONS["symbol"],
    "country": ("{} is a city in", CITIES[0] | CITIES[1]),
}
