// What a block of folded_sums.cu or norm_slabs.cu does between its barriers to fold sums, thread by thread: so the unit
// tests replay it on a CPU.
#pragma once

#include "../../kernels/norm_gradient.hpp"

namespace dtrain::backend::cuda {

// What a block has of the sums: a tile of so many packs of a row, and folded parts of the rows.
struct SumPlace {
  std::int32_t packs, tile, first_fold, folds, threads;
};

// Columns are those of all kinds of sums of the tile. A barrier stands between two steps; after fold_parts() goes on
// who knows that all blocks of the tile did that.
template <typename Sums, typename Finish>
class SumBlock {
 public:
  using T = typename Sums::Result::Value;
  static constexpr std::int32_t kinds = Sums::Result::kinds, size = Pack<T>::size;
  // Shared memory: parts as floats; later, as doubles, groups of folded parts.
  DTRAIN_KERNEL static constexpr std::int32_t bytes(std::int32_t threads, std::int32_t packs, std::int32_t all_folds) {
    const std::int32_t parts = threads * kinds * size * static_cast<std::int32_t>(sizeof(float));
    const std::int32_t groups =
        sum_groups(all_folds) * kinds * packs * size * static_cast<std::int32_t>(sizeof(double));
    return parts > groups ? parts : groups;
  }

  DTRAIN_KERNEL SumBlock(const FoldedSums<Sums, Finish>& work, const SumPlace& place)
      : work_(work),
        cut_(work.sums.cut),
        c_(work.sums.channels()),
        place_(place),
        channels_(place.packs * size),
        first_part_(place.first_fold * cut_.parts_per_fold),
        rows_(at_most(place.folds * cut_.parts_per_fold, cut_.parts - first_part_)) {}

  // Where a thread has something to sum: the channels of `at`, of which it leaves the sums.
  DTRAIN_KERNEL bool has_part(std::int32_t thread) const {
    return row_of(thread) < rows_ && std::int64_t{pack_of(thread)} * size < c_;
  }
  template <bool Whole = false>
  DTRAIN_KERNEL ChannelsOfPart<T, Whole> part_of(std::int32_t thread) const {
    return {first_part_ + row_of(thread), pack_of(thread), c_};
  }
  DTRAIN_KERNEL void put(std::int32_t thread, const typename Sums::Result& sums, float* parts) const {
    const std::int32_t row = row_of(thread), lane = thread - row * place_.packs;
    DTRAIN_UNROLL
    for (int kind = 0; kind < kinds; ++kind) {
      DTRAIN_UNROLL
      for (int k = 0; k < size; ++k) parts[row * columns() + kind * channels_ + lane * size + k] = sums.values[kind][k];
    }
  }

  // [part][column]
  DTRAIN_KERNEL void sum_parts(std::int32_t thread, float* parts) const {
    if (has_part(thread)) put(thread, work_.sums.sums_at(part_of(thread)), parts);
  }

  // For other blocks to see.
  DTRAIN_KERNEL void fold_parts(std::int32_t thread, const float* parts) const {
    for (std::int32_t task = thread; task < place_.folds * columns(); task += place_.threads) {
      const std::int32_t fold = task / columns(), column = task - fold * columns();
      const std::int32_t first = fold * cut_.parts_per_fold, rows = at_most(cut_.parts_per_fold, rows_ - first);
      if (rows <= 0 || channel_of(column) >= c_) continue;
      const double sum =
          sum_in_order(rows, [&](std::int32_t row) { return parts[(first + row) * columns() + column]; });
      store(static_cast<float>(sum), work_.fold.out + place_of(place_.first_fold + fold, column));
    }
  }

  // Leaves [group][column] of the folded parts of all blocks.
  DTRAIN_KERNEL void sum_groups_of_folds(std::int32_t thread, double* groups) const {
    const std::int32_t tasks = sum_groups(cut_.folded_parts) * columns();
    for (std::int32_t task = thread; task < tasks; task += place_.threads) {
      const std::int32_t group = task / columns(), column = task - group * columns();
      if (channel_of(column) >= c_) continue;
      groups[task] = sum_of_group(group, cut_.folded_parts,
                                  [&](std::int32_t fold) { return load(work_.fold.out + place_of(fold, column)); });
    }
  }

  DTRAIN_KERNEL void finish(std::int32_t thread, const double* groups) const {
    for (std::int32_t k = thread; k < channels_ && first_channel() + k < c_; k += place_.threads) {
      double totals[kinds] = {};
      for (std::int32_t group = 0; group < sum_groups(cut_.folded_parts); ++group) {
        DTRAIN_UNROLL
        for (int kind = 0; kind < kinds; ++kind) totals[kind] += groups[group * columns() + kind * channels_ + k];
      }
      work_.finish.finish(first_channel() + k, totals);
    }
  }

 private:
  // What other blocks of the launch read or wrote: past the first cache, which is a processor's own.
  DTRAIN_KERNEL static void store(float value, float* to) {
#ifdef __CUDA_ARCH__
    __stcg(to, value);
#else
    *to = value;
#endif
  }
  DTRAIN_KERNEL static float load(const float* from) {
#ifdef __CUDA_ARCH__
    return __ldcg(from);
#else
    return *from;
#endif
  }
  DTRAIN_KERNEL static std::int32_t at_most(std::int32_t a, std::int32_t b) { return a < b ? a : b; }
  DTRAIN_KERNEL std::int32_t row_of(std::int32_t thread) const { return thread / place_.packs; }
  DTRAIN_KERNEL std::int32_t pack_of(std::int32_t thread) const {
    return place_.tile * place_.packs + thread % place_.packs;
  }
  DTRAIN_KERNEL std::int32_t first_channel() const { return place_.tile * channels_; }
  DTRAIN_KERNEL std::int32_t columns() const { return kinds * channels_; }
  DTRAIN_KERNEL std::int32_t channel_of(std::int32_t column) const { return first_channel() + column % channels_; }
  DTRAIN_KERNEL std::int64_t place_of(std::int32_t fold, std::int32_t column) const {
    return (std::int64_t{fold} * kinds + column / channels_) * c_ + channel_of(column);
  }

  const FoldedSums<Sums, Finish>& work_;
  const RowParts& cut_;
  const std::int32_t c_;
  const SumPlace place_;
  const std::int32_t channels_, first_part_, rows_;
};

}  // namespace dtrain::backend::cuda
