"""Random cron expressions as text: with more edge cases than users would write, but all valid input."""

from random import Random

NAMES = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")


def clock_field(rng: Random, hi: int, likely: tuple[int, ...]) -> str:
    """Draw a seconds, minutes or hours field up to `hi`: a star, a step, a value or a list, often of likely values."""
    value = (lambda: rng.choice(likely)) if rng.random() < 0.7 else (lambda: rng.randint(0, hi))
    one, two = sorted((value(), value()))
    return rng.choice(
        [
            "*",
            f"*/{rng.choice([2, 3, 5, 7, 10, 12, 15, 20, 30, 45])}",
            f"{one}",
            f"{one}",
            f"{one},{two}",
            f"{one}-{two}",
            f"{one}-{two}/{rng.randint(1, 7)}",
            f"{one}/{rng.randint(1, 30)}",
            f"{one},{two}-{hi}",
        ]
    )


def unix_text(rng: Random, *, seconds: bool | None = None) -> str:
    """Draw an expression of the unix dialect; it may never fire."""
    six = rng.random() < 0.3 if seconds is None else seconds
    second = [clock_field(rng, 59, (0, 0, 0, 30))] if six else []
    minute, hour = clock_field(rng, 59, (0, 15, 30, 45)), clock_field(rng, 23, (0, 1, 2, 3, 9, 12, 22, 23))
    day, end = sorted((rng.randint(1, 31), rng.randint(1, 31)))
    dom = ["*"] * 6 + [
        f"{day}",
        f"{day},{end}",
        f"{day}-{end}",
        f"*/{rng.randint(2, 32)}",
        "L",
        "LW",
        f"{day}W",
        f"1,{day}W",
    ]
    dow = ["*"] * 6 + _weekdays(rng, 0)
    return " ".join([*second, minute, hour, rng.choice(dom), _month(rng), rng.choice(dow)])


def quartz_text(rng: Random, *, years: bool = True) -> str:
    """Draw an expression of the quartz dialect; it may never fire."""
    clock = [
        clock_field(rng, 59, (0, 0, 30)),
        clock_field(rng, 59, (0, 15, 30, 45)),
        clock_field(rng, 23, (0, 1, 2, 3, 22, 23)),
    ]
    if rng.random() < 0.2:
        clock[2] = f"{rng.randint(12, 23)}-{rng.randint(0, 11)}"
    days = _quartz_dom(rng), "?"
    if rng.random() < 0.5:
        days = "?", rng.choice(["*", "L", "FRI-MON", *_weekdays(rng, 1)])
    first = rng.randint(1975, 2090)
    year = rng.choice([f"{first}", f"{first}-{first + rng.randint(0, 9)}", f"{first}/{rng.randint(1, 9)}", "*"])
    return " ".join(
        [*clock, days[0], _month(rng, wrap=True), days[1], *([year] if years and rng.random() < 0.3 else [])]
    )


def _quartz_dom(rng: Random) -> str:
    day, end = rng.randint(1, 31), rng.randint(1, 31)
    plain = ["*", "*", f"{day}", f"{day}", f"{day},{end}", f"{day}-{end}", f"{day}/{rng.randint(2, 9)}"]
    return rng.choice([*plain, "L", "LW", f"L-{rng.randint(1, 30)}", f"L-{rng.randint(1, 5)}W", f"{day}W", f"{day}W,L"])


def _weekdays(rng: Random, sunday: int) -> list[str]:
    one, two = sorted((rng.randint(0, 6), rng.randint(0, 6)))
    number = rng.randint(sunday, 6 + sunday)
    return [
        f"{number}",
        NAMES[one],
        f"{NAMES[one]},{NAMES[two]}",
        f"{NAMES[one]}-{NAMES[two]}",
        f"{number}#{rng.randint(1, 5)}",
        f"{NAMES[one]}L",
        f"{number}L,{NAMES[two]}",
        "MON-FRI",
    ]


def _month(rng: Random, *, wrap: bool = False) -> str:
    one, two = rng.randint(1, 12), rng.randint(1, 12)
    if not wrap and one > two:
        one, two = two, one
    rare = [
        f"{one}",
        MONTHS[one - 1],
        f"{one},{two}",
        f"{one}-{two}",
        f"*/{rng.randint(2, 7)}",
        f"{one}/{rng.randint(1, 6)}",
    ]
    return rng.choice(["*"] * 7 + rare)
