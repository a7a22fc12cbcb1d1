"""Prefix trees in plain Python, one object a token: slow, and sharing no code with the package."""

from __future__ import annotations


def prefixes(sequences, *, single_next=False):
    """The distinct beginnings of sequences; with `single_next` told apart by the token that follows, too."""
    found = set()
    for ids in sequences:
        for end in range(1, len(ids) + 1):
            follows = ids[end] if end < len(ids) else None
            found.add((tuple(ids[:end]), follows) if single_next else tuple(ids[:end]))
    return found


class Node:
    """One token of a tree, as a builder makes it that inserts sequences token by token."""

    __slots__ = ("children", "is_end", "sequences", "token")

    def __init__(self, token):
        self.token, self.children, self.sequences, self.is_end = token, {}, [], False


def build(sequences):
    """A root without a token over the nodes of all sequences."""
    root = Node(None)
    for number, ids in enumerate(sequences):
        node = root
        for token in ids:
            if token not in node.children:
                node.children[token] = Node(token)
            node = node.children[token]
            node.sequences.append(number)
        node.is_end = True
    return root


def compressed(sequences):
    """Chains of nodes put together: tokens, parent and sequences of each, in depth-first order by token."""
    found = []
    pending = [(child, -1) for _, child in sorted(build(sequences).children.items(), reverse=True)]
    while pending:
        node, parent = pending.pop()
        tokens = [node.token]
        while len(node.children) == 1 and not node.is_end:
            node = next(iter(node.children.values()))
            tokens.append(node.token)
        found.append((tokens, parent, node.sequences))
        index = len(found) - 1
        pending += [(child, index) for _, child in sorted(node.children.items(), reverse=True)]
    return found
