"""When an answer keeps to the format that fine-tuning teaches: the one definition, for training and evaluation."""


def keeps_format(balanced: bool, summaries: int) -> bool:
    """Whether an answer has at least one summary and every delimiter its partner.

    Parameters
    ----------
    balanced : bool
        Whether no delimiter is without its partner, which is also so where none was written.
    summaries : int
        Summaries of the answer.
    """
    return balanced and summaries > 0
