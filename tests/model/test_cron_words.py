"""Expressions in plain English: their sentences, and that no sentence has two meanings."""

from contextlib import suppress
from random import Random

import pytest

from horae.errors import BadInput
from horae.model.triggers.cron.parse import parse_cron
from horae.model.triggers.cron.words.calendar import cron_in_words
from tests.model.cron.writing import quartz_text, unix_text


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        ("* * * * *", "every minute"),
        ("0,15,30,45 * * * *", "every 15 minutes"),
        ("0,30 * * * *", "every 30 minutes"),
        ("5/15 * * * *", "every 15 minutes from :05"),
        ("*/7 * * * *", "every 7 minutes of each hour"),
        ("0-10 * * * *", "every minute from :00 to :10"),
        ("5,20 * * * *", "every hour at :05 and :20"),
        ("* 9 * * *", "every minute between 09:00 and 09:59"),
        ("*/15 9-17 * * *", "every 15 minutes between 09:00 and 17:59"),
        ("*/10 22,23,0,1 * * *", "every 10 minutes between 22:00 and 01:59"),
        ("*/5 14,18 * * *", "every 5 minutes during the hours 14 and 18"),
        ("* */2 * * *", "every minute during every 2nd hour"),
        ("0 9-17 * * MON-FRI", "every hour from 09:00 to 17:00 from Monday to Friday"),
        ("0 */2 * * *", "every 2 hours at :00"),
        ("30 1-23/2 * * *", "every 2 hours from 01:30"),
        ("0 */5 * * *", "every 5 hours from 00:00 to 20:00"),
        ("*/20 * * * * *", "every 20 seconds"),
        ("15 * * * * *", "every minute, at second 15"),
        ("30 0 9 * * *", "at 09:00:30 every day"),
        ("*/10 0-4 9 * * *", "every 10 seconds during :00 to :04 between 09:00 and 09:59"),
        ("*/10 5 * * * *", "every 10 seconds during :05 of every hour"),
        ("0 0 1,15 * *", "at 00:00 on days 1 and 15 of the month"),
        ("0 0 1-7 * *", "at 00:00 on days 1 to 7 of the month"),
        ("0 0 */2 * *", "at 00:00 on every 2nd day of the month from day 1"),
        ("0 0 1,L * *", "at 00:00 on day 1 and the last day of the month"),
        ("0 0 15W * *", "at 00:00 on the weekday nearest to day 15 of the month"),
        ("0 0 LW * *", "at 00:00 on the last weekday of the month"),
        ("0 0 * * 0,6", "at 00:00 on Saturday and Sunday"),
        ("0 0 * * 5-7", "at 00:00 from Friday to Sunday"),
        ("0 0 * * 5L", "at 00:00 on the last Friday of the month"),
        ("0 0 * * 1-5,0#1", "at 00:00 from Monday to Friday and on the first Sunday of the month"),
        ("0 0 13 * 5", "at 00:00 on day 13 of the month or on Friday"),
        ("0 0 */32,1-7 * 2", "at 00:00 on Tuesday, only on days 1 to 7 of the month"),
        ("0 0 1-31 * 1", "at 00:00 every day"),
        ("0 0 1 1,7 *", "at 00:00 on day 1 of the month in January and July"),
        ("0 0 1 3-10 *", "at 00:00 on day 1 of the month from March to October"),
    ],
)
def test_a_unix_expression_in_plain_english(expression, sentence):
    assert cron_in_words(parse_cron(expression)) == sentence


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        ("0 0 12 * * ?", "at 12:00 every day"),
        ("0 0 22-2 * * ?", "every hour from 22:00 to 02:00"),
        ("0 15 10 ? * 6#3", "at 10:15 on the third Friday of the month"),
        ("0 0 0 L-3 * ?", "at 00:00 on the 4th last day of the month"),
        ("0 0 0 L-1W * ?", "at 00:00 on the weekday nearest to the 2nd last day of the month"),
        ("0 0 9 ? NOV-FEB FRI-MON", "at 09:00 from Friday to Monday from November to February"),
        ("0 0 9 ? * 2-6 2027", "at 09:00 from Monday to Friday in 2027"),
        ("0 0 9 * * ? 2027-2030", "at 09:00 every day in 2027 to 2030"),
        ("0 0 9 * * ? 2024/2", "at 09:00 every day in every 2nd year from 2024 to 2098"),
        ("0 0 9 * * ? 2026,2040", "at 09:00 every day in 2026 and 2040"),
    ],
)
def test_a_quartz_expression_in_plain_english(expression, sentence):
    assert cron_in_words(parse_cron(expression, "quartz")) == sentence


def test_no_sentence_stands_for_two_meanings():
    rng, meanings = Random(7), {}
    for _ in range(4_000):
        dialect, write = rng.choice([("unix", unix_text), ("quartz", quartz_text)])
        with suppress(BadInput):
            x = parse_cron(write(rng), dialect, "default/job")
            meaning = (x.seconds.bits, x.minutes.bits, x.hours.bits, x.months, x.days, x.years)
            words = cron_in_words(x)
            assert words is None or meanings.setdefault(words, (meaning, x.text))[0] == meaning, (words, x.text)
    assert len(meanings) > 1_500
