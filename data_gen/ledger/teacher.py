"""What a teacher says of a ledger paragraph: the account and what it builds on; the value stays in the paragraph."""

import re

TOPIC = re.compile(r"[A-Z]+ for ([a-z]+: [a-z]+ above [a-z]+)\.|=\? (value of [a-z]+: [a-z]+)\.")


def summarize_paragraph(paragraph: str) -> str:
    """Return the summary of a ledger paragraph, such as `tom: du above ada` for one about that line.

    Raises
    ------
    ValueError
        If the paragraph does not open with a line of a ledger.
    """
    topic = TOPIC.search(paragraph)
    if topic is None:
        raise ValueError(f"not a ledger paragraph: {paragraph[:60]!r}")
    return topic.group(1) or topic.group(2)
