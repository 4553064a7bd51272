"""A slow, direct transcription of the paper's decoding: whole forwards under a (T, T) mask, and loops for the rest."""

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import sdpa_mask

from zoomr.rotary import Rotary

SEEN = {}


def reference_attention(module, query, key, value, attention_mask, scaling, **kwargs):
    SEEN[module.layer_idx] = (query[0], key[0])
    groups = query.shape[1] // key.shape[1]
    output = torch.empty_like(query)
    for head in range(query.shape[1]):
        scores = query[0, head] @ key[0, head // groups].T * scaling
        scores = scores.masked_fill(~attention_mask[0, 0], float("-inf"))
        output[0, head] = scores.softmax(-1) @ value[0, head // groups]
    return output.transpose(1, 2), None


AttentionInterface.register("reference", reference_attention)
AttentionMaskInterface.register("reference", sdpa_mask)


def forward(model, tokens, rows):
    """Logits of all positions when position t attends to the set rows[t]."""
    length = len(tokens)
    mask = torch.zeros(1, 1, length, length, dtype=torch.bool)
    for t, attended in enumerate(rows):
        mask[0, 0, t, sorted(attended)] = True
    model.set_attn_implementation("reference")
    with torch.inference_mode():
        return model(torch.tensor([tokens]), attention_mask=mask, use_cache=False).logits[0]


def segments(tokens, prompt, begin, end):
    """Finished (paragraph, summary) pairs as lists of positions."""
    found, start, opened = [], prompt, None
    for position in range(prompt, len(tokens)):
        if tokens[position] == begin:
            opened = position
        elif tokens[position] == end and opened is not None:
            found.append((list(range(start, opened)), list(range(opened, position + 1))))
            start, opened = position + 1, None
    return found


def zoom_votes(
    model, tokens, rows, found, k, allowed=None, weighted=False, per_kv_head=False, outer=False, voters=None
):
    """Votes and summed softmax for each finished summary, by the last token's queries."""
    forward(model, tokens, rows)
    allowed = [True] * len(found) if allowed is None else allowed
    votes, mass = [0.0] * len(found), [0.0] * len(found)
    for layer in range(len(SEEN)):
        query, key = SEEN[layer]
        groups = query.shape[0] // key.shape[0]
        ballots = []
        for head in range(query.shape[0]):
            if voters is not None and (layer, head) not in voters:
                ballots.append(None)
                continue
            scores = []
            for i, (_, summary) in enumerate(found):
                inner = summary if outer else summary[1:-1]
                mean = sum(key[head // groups, j] for j in inner) / len(inner)
                scores.append(float(query[head, -1] @ mean) if allowed[i] else float("-inf"))
            ballots.append(scores)
        if per_kv_head:
            shared = [list(filter(None, ballots[first : first + groups])) for first in range(0, len(ballots), groups)]
            ballots = [[max(scores) for scores in zip(*own, strict=True)] for own in shared]
        for scores in filter(None, ballots):
            soft = torch.softmax(torch.tensor(scores, dtype=torch.float64) * query.shape[-1] ** -0.5, 0).nan_to_num()
            for i in sorted(range(len(found)), key=lambda i: -scores[i])[:k]:
                votes[i] += (float(soft[i]) if weighted else 1) * allowed[i]
            for i in range(len(found)):
                mass[i] += float(soft[i])
    return votes, mass


def contrast(model, tokens, rows, found, bare):
    """What the last token's queries ask beyond the mean of those at earlier refreshes, and now theirs among them."""
    forward(model, tokens, rows)
    rotary, newest = Rotary.of(model), torch.tensor([len(tokens) - 1])
    votes = [0.0] * len(found)
    for layer in range(len(SEEN)):
        query, key = SEEN[layer]
        groups = query.shape[0] // key.shape[0]
        for head in range(query.shape[0]):
            own = bare.setdefault((layer, head), [])
            mean = sum(own) / len(own) if own else torch.zeros(1, query.shape[-1])
            for asked, sign in ((query[head, -1], 1), (rotary(mean[None], newest)[0, 0], -1)):
                scores = []
                for _, summary in found:
                    keys = [key[head // groups, j] for j in summary[1:-1]]
                    scores.append(float(asked @ (sum(keys) / len(keys))) * query.shape[-1] ** -0.5)
                for i, weight in enumerate(torch.softmax(torch.tensor(scores, dtype=torch.float64), 0)):
                    votes[i] += sign * float(weight)
            own.append(rotary(query[head, -1:][None], -newest)[0])
    return votes, votes


def zoomr(model, prompt, continuation, boundaries, begin, end, policy):
    """Logits of every continuation token (the last is not fed) and the refreshes that were made.

    Returns logits (n, V), where line i is the distribution of continuation[i], and a list of
    (position, votes, zoomed, shown, active set).
    """
    tokens = list(prompt)
    rows = [set(range(t + 1)) for t in range(len(prompt))]
    active, refreshes, since, tally, bare = set(range(len(prompt))), [], 0, {}, {}
    for token in continuation[:-1]:
        t = len(tokens)
        tokens.append(token)
        active = active | {t}
        rows.append(set(active))
        since += 1
        due = token in boundaries if policy.every is None else since >= policy.every
        due = due or since >= policy.force_after
        found = segments(tokens, len(prompt), begin, end)
        outside = [paragraph[0] <= t - policy.window for paragraph, _ in found]
        if due and policy.votes_by == "contrast":
            tally = dict(enumerate(zip(*contrast(model, tokens, rows, found, bare), strict=True)))
        elif found and (due or policy.vote_span):
            allowed = outside if policy.exclude_covered else None
            options = policy.votes_by == "mass", policy.per_kv_head, policy.with_delimiters, policy.voters
            cast = zoom_votes(model, tokens, rows, found, policy.k, allowed, *options)
            for i in range(len(found)):
                votes, mass = tally.get(i, (0.0, 0.0))
                tally[i] = (votes + cast[0][i], mass + cast[1][i])
        if due:
            votes = [tally.get(i, (0.0, 0.0))[0] for i in range(len(found))]
            voted = [i for i in range(len(found)) if votes[i] > 0]
            order = sorted(voted, key=lambda i: (*tally[i], i), reverse=True)
            most = None if policy.most_shown is None else policy.c + policy.most_shown
            zoomed, shown = sorted(order[: policy.c]), sorted(order[policy.c : most])
            active = set(range(len(prompt))) | set(range(max(0, t - policy.window + 1), t + 1))
            if policy.keep_open:
                active |= set(range(found[-1][1][-1] + 1 if found else len(prompt), t + 1))
            for i in zoomed:
                active |= set(found[i][0])
            for i in shown:
                active |= set(found[i][1]) | set(found[i][0][-policy.tail :] if policy.tail else [])
            refreshes.append((t, votes, zoomed, shown, active))
            since, tally = 0, {}
    logits = forward(model, tokens, rows)
    return logits[len(prompt) - 1 :], refreshes
