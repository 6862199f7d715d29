"""Ten reviews of a tea pot, sorted: by an agent that finds its way, and by a workflow whose way is written down.

tenlines run "Sort all reviews." --tools examples/reviews.py
python examples/reviews.py
"""

from __future__ import annotations

from enum import Enum

from tenlines import tool
from tenlines.flow import Flow, map_over, stage, step

REVIEWS = {
    1: "Pours without a drip, and it kept my tea warm for an hour. I bought a second one for my mother.",
    2: "The lid broke on the third day. The shop has not answered my letter.",
    3: "Beautiful blue glaze. It is a little heavy, but I would not give it away again.",
    4: "It leaks. My tablecloth is ruined.",
    5: "Exactly as shown, packed with care, delivered a day early. Very happy with it.",
    6: "Smells of paint even after ten washes. I have sent it back.",
    7: "Smaller than I thought, but just right for two cups. I use it every morning.",
    8: "The handle gets so hot that nobody can hold it. Useless.",
    9: "My best buy of the year. The strainer catches even the finest leaves.",
    10: "Arrived in pieces, twice. I give up.",
}


class Verdict(Enum):
    """What somebody thinks of the pot."""

    GOOD = "good"
    BAD = "bad"


@tool(read_only=True)
def read_review(number: int) -> str:
    """Read one review.

    Args:
        number: From 1 to 10.
    """
    if number not in REVIEWS:
        raise ValueError(f"there is no review {number}: they are numbered from 1 to {len(REVIEWS)}")
    return REVIEWS[number]


@tool(idempotent=True)
def record_verdict(number: int, verdict: Verdict) -> str:
    """Record what a review says of the pot.

    Args:
        number: Number of the review.
        verdict: good or bad.
    """
    return f"review {number} is recorded as {verdict.value}"


# --- the same as a workflow ---------------------------------------------------------------------------------


@stage
async def verdict_of(review: str) -> Verdict:
    """Say whether the writer of this review of a tea pot is happy with it: good or bad."""


read, record = step(read_review), step(record_verdict)


async def sort_one(number: int) -> Verdict:
    """One review: read it, ask, record."""
    verdict = await verdict_of(await read(number))
    await record(number, verdict)
    return verdict


async def sort_reviews(numbers: list[int]) -> dict[int, Verdict]:
    """Each review by itself; no request holds another one."""
    return dict(zip(numbers, await map_over(sort_one, numbers), strict=True))


def workflow(model: object = "local", **options: object) -> Flow[dict[int, Verdict]]:
    """The workflow, with a model."""
    return Flow(sort_reviews, [read, verdict_of, record], model=model, **options)


if __name__ == "__main__":
    for number, verdict in workflow().run_sync([*REVIEWS]).output.items():
        print(number, verdict.value)
