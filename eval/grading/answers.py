"""Where the answer stands in a generation: the last box outside the summaries, and nothing else."""

from data_gen.boxed import Answer, boxed_answer
from zoomr.summaries.segments import BEGIN_SUMMARY, END_SUMMARY

MARK = "\n\n"  # stands where a summary was, so that the boxes on its two sides are no neighbours


def strip_summaries(text: str) -> str:
    """Put a paragraph break in the place of each summary and its delimiters.

    Parameters
    ----------
    text : str
        A generation with its delimiters kept.

    Returns
    -------
    str
        The paragraphs alone. A summary that is never closed ends at the next blank line or at the end of the text, so
        that it cannot hide an answer that follows.
    """
    kept, at = [], 0
    closed = True
    while (begin := text.find(BEGIN_SUMMARY, at)) >= 0:
        kept.append(text[at:begin])
        end = text.find(END_SUMMARY, begin) if closed else -1
        closed = end >= 0
        if closed:
            at = end + len(END_SUMMARY)
        else:
            blank = text.find("\n\n", begin)
            at = blank if blank >= 0 else len(text)
    kept.append(text[at:])
    return MARK.join(kept).replace(END_SUMMARY, MARK)


def final_answer(text: str) -> Answer:
    """Read the final answer of a generation: its last box outside the summaries.

    Parameters
    ----------
    text : str
        A generation, summaries included.

    Returns
    -------
    Answer
        As `data_gen.boxed.boxed_answer` reads it.
    """
    return boxed_answer(strip_summaries(text))
