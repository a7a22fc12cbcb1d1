"""Labels: token ids where training uses the token, a filler elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tokentape.batch import PackedBatch

__all__ = ["IGNORED", "labels", "shifted"]

#: The label of a token that is not trained; what torch's cross entropy ignores.
IGNORED = -100


def labels(input_ids: NDArray[np.int32], loss_mask: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Labels aligned to the token itself: the id where `loss_mask` is 1, `-100` elsewhere.

    Example:
        >>> labels(np.array([5, 6, 7], np.int32), np.array([0, 1, 1], np.uint8)).tolist()
        [-100, 6, 7]
    """
    return np.where(loss_mask.astype(bool), input_ids, IGNORED).astype(np.int64)


def shifted(packed: PackedBatch) -> NDArray[np.int64]:
    """Labels for the token before: place `t` holds the label of token `t + 1`, the last place `-100`.

    No label crosses a segment, because the first token of a segment carries no loss.
    """
    own = labels(packed.input_ids, packed.loss_mask)
    return np.append(own[1:], np.int64(IGNORED))
