"""Made-up sets in forms that conversations do not have. A seed makes them the same in every run."""

import random
from datetime import UTC, datetime, timedelta

from kit_data import Case, Item, Question

SEED = 20261118
START = datetime(2026, 1, 5, 9, tzinfo=UTC)

_PEOPLE = [
    "Anna", "Boris", "Chiara", "Derek", "Elif", "Farid", "Greta", "Hassan",
    "Ingrid", "Jonas", "Keiko", "Lorenzo", "Mina", "Nadia", "Oscar", "Priya",
]  # fmt: skip
_CITIES = [
    "Lisbon", "Oslo", "Turin", "Ghent", "Porto", "Riga", "Bergen", "Lyon",
    "Graz", "Split", "Bilbao", "Aarhus", "Cork", "Leeds", "Malmo", "Brno",
]  # fmt: skip
_THINGS = [
    "bicycle", "piano", "telescope", "kayak", "sofa", "camera", "drone", "tent",
    "laptop", "guitar", "oven", "watch", "printer", "lamp", "desk", "rug",
]  # fmt: skip
_COLOURS = ["red", "blue", "green", "black", "white", "yellow", "purple", "orange", "silver", "brown"]
_VERBS = ["parse", "load", "merge", "flush", "encode", "resolve", "schedule", "retry", "validate", "render"]
_NOUNS = ["config", "session", "token", "index", "payload", "header", "cursor", "bucket", "schema", "worker"]
_ERRORS = ["timeout", "deadlock", "overflow", "corruption", "truncation", "mismatch", "leak", "starvation"]
_MONTHS = [
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
]  # fmt: skip
_SURNAMES = ["王", "李", "张", "刘", "陈", "杨", "黄", "赵", "吴", "周"]
_DISHES = ["饺子", "火锅", "面条", "豆腐", "春卷", "烤鸭", "米饭", "粽子"]
_PLACES = ["北京", "上海", "广州", "成都", "西安", "杭州", "南京", "武汉"]
_TRADES = ["医生", "老师", "律师", "厨师", "司机", "记者", "护士", "作家"]


def _facts(dice: random.Random) -> Case:
    """Return similar facts about people: a hit must match in person, thing and place."""
    items, questions = [], []
    for number, (person, thing) in enumerate((person, thing) for person in _PEOPLE for thing in _THINGS):
        city, colour = dice.choice(_CITIES), dice.choice(_COLOURS)
        text = f"{person} bought a {colour} {thing} in {city} for {dice.randrange(40, 900)} euros."
        items.append(Item(key=f"f{number}", text=text))
        if number % 2:
            asked = dice.choice((f"Where did {person} buy the {thing}?", f"What colour is {person}'s {thing}?"))
            questions.append(Question(text=asked, evidence=(f"f{number}",)))
    return Case(name="facts among facts alike", items=tuple(items), questions=tuple(questions))


def _identifiers(dice: random.Random) -> Case:
    """Return notes on code: identifiers, files, error codes."""
    items, questions = [], []
    pairs = [(verb, noun) for verb in _VERBS for noun in _NOUNS]
    for number, (verb, noun) in enumerate(pairs):
        style = number % 3
        name = (f"{verb}_{noun}", f"{verb}{noun.title()}", f"{verb.title()}{noun.title()}Error")[style]
        error, code = dice.choice(_ERRORS), f"E{dice.randrange(1000, 9999)}"
        path = f"src/{noun}/{verb}.py"
        items.append(
            Item(key=f"c{number}", text=f"`{name}` in {path} raised {code} because of a {error}; fixed by a lock.")
        )
        asked = (f"what went wrong in {name}", f"{code} cause", f"why was there a {error} in {path}?")[
            dice.randrange(3)
        ]
        questions.append(Question(text=asked, evidence=(f"c{number}",)))
    return Case(name="code identifiers", items=tuple(items), questions=tuple(questions))


def _dates(dice: random.Random) -> Case:
    """Return events with their days, and questions that name the day or the event."""
    items, questions = [], []
    for number in range(200):
        person, month, day = dice.choice(_PEOPLE), dice.choice(_MONTHS), dice.randrange(1, 29)
        thing, city = dice.choice(_THINGS), dice.choice(_CITIES)
        text = f"On {day} {month} 2025 {person} picked up the {thing} from the shop in {city}."
        items.append(Item(key=f"d{number}", text=text, when=START + timedelta(hours=number)))
        asked = (
            f"What did {person} pick up on {day} {month}?"
            if number % 2
            else f"When did {person} get the {thing} in {city}?"
        )
        questions.append(Question(text=asked, evidence=(f"d{number}",)))
    return Case(name="dates", items=tuple(items), questions=tuple(questions))


def _chinese(dice: random.Random) -> Case:
    """Return Chinese facts, which have no spaces between words."""
    items, questions = [], []
    people = [f"{surname}{given}" for surname in _SURNAMES for given in ("小明", "丽华", "建国", "雪梅")]
    for number, person in enumerate(people):
        place, dish, trade = dice.choice(_PLACES), dice.choice(_DISHES), dice.choice(_TRADES)
        items.append(Item(key=f"z{number}", text=f"{person}住在{place},是一名{trade},最喜欢吃{dish}。"))
        asked = dice.choice((f"{person}住在哪里?", f"{person}喜欢吃什么?", f"{person}做什么工作?"))
        questions.append(Question(text=asked, evidence=(f"z{number}",)))
    return Case(name="Chinese", items=tuple(items), questions=tuple(questions))


def _aside(dice: random.Random) -> Case:
    """Return passing remarks; other sessions discuss nearly the same subject at length."""
    items, questions = [], []
    for number, (person, thing) in enumerate(zip(_PEOPLE, _THINGS, strict=True)):
        other, buyer = _PEOPLE[number - 3], dice.choice(_CITIES)
        talk = [f"{person} likes the {thing} very much, it is {colour}." for colour in _COLOURS]
        talk += [f"{other} asked {person} about the {thing} in {city}." for city in _CITIES[:8]]
        rest = [f"{dice.choice(_PEOPLE)} was late because of the train to {city}." for city in _CITIES]
        said = f"By the way, {person} sold the {thing} to a neighbour from {buyer}."
        rest.insert(dice.randrange(len(rest)), said)
        for session, texts in ((f"a{number}", talk), (f"b{number}", rest)):
            for place, text in enumerate(texts):
                items.append(Item(key=f"{session}-{place}", text=text, session=session))
        where = f"b{number}-{rest.index(said)}"
        asked = f"Who did {person} sell the {thing} to?" if number % 2 else f"To whom was {person}'s {thing} sold?"
        questions.append(Question(text=asked, evidence=(where,)))
    return Case(name="said in passing", items=tuple(items), questions=tuple(questions))


def made_up() -> tuple[Case, ...]:
    """Return the made-up sets, the same in every run."""
    makers = (_facts, _identifiers, _dates, _chinese, _aside)
    return tuple(make(random.Random(SEED)) for make in makers)
