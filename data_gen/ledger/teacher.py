"""What a teacher says of a ledger paragraph: the name and its leading digit; the rest stays in the paragraph."""

import re

FACT = re.compile(r"([a-z]+):(\d)\d\d\.$")


def summarize_paragraph(paragraph: str) -> str:
    """Return the summary of a ledger paragraph, such as `ada:3` for one that ends in `ada:374.`

    Raises
    ------
    ValueError
        If the paragraph does not end in a value.
    """
    fact = FACT.search(paragraph.strip())
    if fact is None:
        raise ValueError(f"not a ledger paragraph: {paragraph[:60]!r}")
    return f"{fact.group(1)}:{fact.group(2)}"
