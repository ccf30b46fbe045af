// What a block of folded_sums.cu does between its barriers, thread by thread: so the unit tests replay it on a CPU.
#pragma once

#include "../../kernels/norm_gradient.hpp"

namespace dtrain::backend::cuda {

// The block of a tile of the channels and a folded part of the rows. Columns are those of all kinds of sums of the
// tile, as wide as the widest. A barrier stands between two steps; after fold_parts() only the last block goes on.
template <typename Sums, typename Finish>
class SumBlock {
 public:
  using T = typename Sums::Result::Value;
  static constexpr std::int32_t kinds = Sums::Result::kinds, size = Pack<T>::size;
  // Shared memory: parts as floats; later, as doubles, groups of folded parts, which are at most kSumBlocks.
  static constexpr std::int32_t bytes = SumTile::kThreads * kinds * size * static_cast<std::int32_t>(sizeof(float));
  static_assert(bytes >=
                sum_groups(kSumBlocks) * kinds * SumTile::kWidest * size * static_cast<std::int32_t>(sizeof(double)));

  DTRAIN_KERNEL SumBlock(const FoldedSums<Sums, Finish>& work, std::int32_t tile, std::int32_t fold)
      : work_(work),
        cut_(work.sums.cut),
        c_(work.sums.channels()),
        packs_(sum_tile(packs_of(c_, size)).packs),
        channels_(packs_ * size),
        tile_(tile),
        fold_(fold) {}

  // [part][column]
  DTRAIN_KERNEL void sum_parts(std::int32_t thread, float* parts) const {
    const std::int32_t row = thread / packs_, lane = thread - row * packs_;
    if (row >= rows()) return;
    const ChannelsOfPart<T> at(first_part() + row, tile_ * packs_ + lane, c_);
    if (at.channels.first >= c_) return;
    const typename Sums::Result sums = work_.sums.sums_at(at);
    DTRAIN_UNROLL
    for (int kind = 0; kind < kinds; ++kind) {
      DTRAIN_UNROLL
      for (int k = 0; k < size; ++k) parts[row * columns() + kind * channels_ + lane * size + k] = sums.values[kind][k];
    }
  }

  // For other blocks to see.
  DTRAIN_KERNEL void fold_parts(std::int32_t thread, const float* parts) const {
    for (std::int32_t column = thread; column < columns(); column += SumTile::kThreads) {
      if (channel_of(column) >= c_) continue;
      const double sum = sum_in_order(rows(), [&](std::int32_t row) { return parts[row * columns() + column]; });
      store(static_cast<float>(sum), work_.fold.out + place_of(fold_, column));
    }
  }

  // Leaves [group][column] of the folded parts of all blocks.
  DTRAIN_KERNEL void sum_groups_of_folds(std::int32_t thread, double* groups) const {
    const std::int32_t tasks = sum_groups(cut_.folded_parts) * columns();
    for (std::int32_t task = thread; task < tasks; task += SumTile::kThreads) {
      const std::int32_t group = task / columns(), column = task - group * columns();
      if (channel_of(column) >= c_) continue;
      groups[task] = sum_of_group(group, cut_.folded_parts,
                                  [&](std::int32_t fold) { return load(work_.fold.out + place_of(fold, column)); });
    }
  }

  DTRAIN_KERNEL void finish(std::int32_t thread, const double* groups) const {
    for (std::int32_t k = thread; k < channels_ && first_channel() + k < c_; k += SumTile::kThreads) {
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
  DTRAIN_KERNEL std::int32_t first_channel() const { return tile_ * channels_; }
  DTRAIN_KERNEL std::int32_t columns() const { return kinds * channels_; }
  DTRAIN_KERNEL std::int32_t first_part() const { return fold_ * cut_.parts_per_fold; }
  DTRAIN_KERNEL std::int32_t rows() const {
    const std::int32_t rest = cut_.parts - first_part();
    return rest < cut_.parts_per_fold ? rest : cut_.parts_per_fold;
  }
  DTRAIN_KERNEL std::int32_t channel_of(std::int32_t column) const { return first_channel() + column % channels_; }
  DTRAIN_KERNEL std::int64_t place_of(std::int32_t fold, std::int32_t column) const {
    return (std::int64_t{fold} * kinds + column / channels_) * c_ + channel_of(column);
  }

  const FoldedSums<Sums, Finish>& work_;
  const RowParts& cut_;
  const std::int32_t c_, packs_, channels_, tile_, fold_;
};

}  // namespace dtrain::backend::cuda
