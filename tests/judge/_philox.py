"""Philox 4x32-10 (Salmon et al., SC'11) and dtrain's dropout mask, as include/dtrain/backend/backend.hpp states it."""

import numpy as np

DROPOUT = 3  # RandomUse::dropout
LOW = np.uint64(0xFFFFFFFF)


def philox(counter, key):
    """counter: four uint64 arrays that hold 32-bit words; key: two ints. Returns four such arrays."""
    counter, key = list(counter), list(key)
    for _ in range(10):
        left, right = np.uint64(0xD2511F53) * counter[0], np.uint64(0xCD9E8D57) * counter[2]
        high = np.uint64(32)
        counter = [(right >> high) ^ counter[1] ^ np.uint64(key[0]), right & LOW,
                   (left >> high) ^ counter[3] ^ np.uint64(key[1]), left & LOW]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return counter


def dropout_mask(seed, epoch, node, sample_ids, size, p):
    """[n, size] of bools: which elements of each sample are kept."""
    blocks = np.arange((size + 3) // 4, dtype=np.uint64)
    key = (seed & 0xFFFFFFFF, (seed >> 32) ^ DROPOUT)
    masks = []
    for sample in sample_ids:
        fixed = [np.full_like(blocks, value) for value in (node, int(sample), epoch)]
        words = np.stack(philox([blocks, *fixed], key), axis=1).reshape(-1)[:size]
        masks.append(words.astype(np.float64) >= np.float64(np.float32(p)) * 2.0**32)
    return np.stack(masks)
