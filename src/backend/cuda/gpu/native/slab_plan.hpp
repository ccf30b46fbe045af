// How a native kernel that goes through a norm's values twice keeps them on the chip in between: a function of the
// shape, the type and what the chip has. Pure.
//
// The kernel has a slab of the values after the other: so many tiles of the channels, all rows. A tile is 64 bytes of a
// row or wider, since memory reads no less at a time. Each of its blocks has folded parts of the rows (RowParts) and
// keeps the first rows of each part in shared memory and the next ones in registers, which are more than half as large.
// What is larger than both is read again. That it may still be in the second cache is not counted on.
#pragma once

#include "../../kernels/sums.hpp"

namespace dtrain::backend::cuda {

struct ChipFacts {
  std::int32_t processors = 0;
  std::int32_t block_bytes = 0;  // of a processor's shared memory, the most that one block gets
};
constexpr ChipFacts kA100{108, 163 << 10}, kH100{132, 227 << 10};  // H200: as H100

constexpr std::int32_t kPackBytes = sizeof(Pack<float>);

struct SlabPlan {
  std::int32_t packs = 0;       // of a row that a tile has; 0: not worth it, the definition is better
  std::int32_t tiles = 0;       // of a row
  std::int32_t at_once = 0;     // tiles of a slab
  std::int32_t blocks = 0;      // of a tile; all of a slab run at the same time
  std::int32_t folds = 0;       // of a block
  std::int32_t threads = 0;     // of a block
  std::int32_t sum_bytes = 0;   // of shared memory, for sums
  std::int32_t kept = 0;        // rows of each part that stay in shared memory
  std::int32_t held = 0;        // rows behind them that stay in registers
  std::int32_t tensors = 0;     // that do
  std::int64_t read_again = 0;  // bytes, in all slabs
  DTRAIN_KERNEL constexpr bool worth_it() const { return packs > 0; }
  constexpr std::int32_t slabs() const { return (tiles + at_once - 1) / at_once; }
  constexpr std::int32_t shared_bytes() const { return sum_bytes + kept * tensors * threads * kPackBytes; }
};

// Leaves a thread 168 registers; 255 where some of them hold rows: a Pack takes four.
constexpr std::int32_t kSlabThreads = 384, kHoldingThreads = 256, kHeldPacks = 24;

// Judgements, in bytes that memory could move meanwhile; measure them on a GPU. A slab waits for its last row, the
// barrier and the folding. The definition has its own folding, and one more start and end of a kernel.
constexpr std::int64_t kBytesOfAWait = 16'000'000, kBytesOfALaunch = 12'000'000;

// Bytes of shared memory for sums, of two kinds.
template <typename T>
constexpr std::int32_t slab_sum_bytes(std::int32_t threads, std::int32_t packs, std::int32_t all_folds) {
  constexpr std::int32_t kKinds = 2, kSize = Pack<T>::size;
  const std::int32_t parts = threads * kKinds * kSize * static_cast<std::int32_t>(sizeof(float));
  const std::int32_t groups =
      sum_groups(all_folds) * kKinds * packs * kSize * static_cast<std::int32_t>(sizeof(double));
  return std::max(parts, groups);
}

// Rows behind the first `kept` of each part.
constexpr std::int64_t rows_behind(const RowParts& cut, std::int64_t kept) {
  const std::int64_t least = cut.rows / cut.parts, longer = cut.rows % cut.parts;
  return longer * std::max<std::int64_t>(0, least + 1 - kept) +
         (cut.parts - longer) * std::max<std::int64_t>(0, least - kept);
}

// With tiles of so many packs, so many of them at once; not worth it where that does not fit. `holds`: there is a
// kernel that has rows in registers.
template <typename T>
constexpr SlabPlan fit_slabs(const RowParts& cut, std::int32_t c, std::int32_t tensors, const ChipFacts& chip,
                             bool holds, std::int32_t packs, std::int32_t at_once) {
  constexpr std::int32_t kSize = Pack<T>::size;
  if (c % (packs * kSize) != 0 || at_once > chip.processors) return {};
  SlabPlan plan{.packs = packs, .tiles = c / kSize / packs, .at_once = at_once, .tensors = tensors};
  const std::int32_t most_blocks = std::min(cut.folded_parts, chip.processors / at_once);
  plan.folds = (cut.folded_parts + most_blocks - 1) / most_blocks;
  plan.blocks = (cut.folded_parts + plan.folds - 1) / plan.folds;
  plan.threads = plan.folds * cut.parts_per_fold * packs;
  if (plan.threads > kSlabThreads) return {};
  plan.sum_bytes = slab_sum_bytes<T>(plan.threads, packs, cut.folded_parts);
  const std::int64_t rows_of_part = (cut.rows + cut.parts - 1) / cut.parts;
  const std::int64_t fitting = (chip.block_bytes - plan.sum_bytes) / (plan.threads * tensors * kPackBytes);
  plan.kept = static_cast<std::int32_t>(std::min(rows_of_part, fitting));
  if (plan.kept < 1) return {};
  if (holds && plan.threads <= kHoldingThreads && plan.kept < rows_of_part) plan.held = kHeldPacks / tensors;
  plan.read_again = rows_behind(cut, plan.kept + plan.held) * c * tensors * static_cast<std::int64_t>(sizeof(T));
  return plan;
}

// `tensors`: that sums are made of, which what is made with the sums reads again.
template <typename T>
constexpr SlabPlan plan_slabs(const RowParts& cut, std::int32_t c, std::int32_t tensors, const ChipFacts& chip,
                              bool holds = true) {
  if (c % Pack<T>::size != 0) return {};
  const std::int32_t packs_in_row = c / Pack<T>::size, widest = sum_tile(packs_in_row).packs;
  const std::int64_t all = cut.rows * c * tensors * static_cast<std::int64_t>(sizeof(T));
  constexpr std::int64_t kErrorOfJudgement = 32;  // less than such a part of the bytes is no gain
  SlabPlan best;
  std::int64_t most_gain = all / kErrorOfJudgement;
  for (const std::int32_t packs : {widest, std::min(widest, SumTile::kWidest / 2)}) {
    for (std::int32_t at_once = packs_in_row / packs; at_once > 0; --at_once) {
      const SlabPlan plan = fit_slabs<T>(cut, c, tensors, chip, holds, packs, at_once);
      if (!plan.worth_it()) continue;
      const std::int64_t gain = all - plan.read_again + kBytesOfALaunch - plan.slabs() * kBytesOfAWait;
      if (gain > most_gain) most_gain = gain, best = plan;
    }
  }
  return best;
}

}  // namespace dtrain::backend::cuda
