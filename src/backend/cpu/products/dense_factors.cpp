#include "dense_factors.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include <dtrain/base/error.hpp>

#include "../kernels/fused_kernels.hpp"

namespace dtrain::backend::cpu {
namespace {

// Sums of a tile stay in the first cache, with those of its siblings; a panel of sources is read once for all rows.
constexpr int kPatchRows = 24, kPatchColumns = kWidestPanel;
constexpr int kPatchFloats = kPatchRows * kPatchColumns;

}  // namespace

struct DenseFactors::Block {
  int row = 0, rows = 0, column = 0, columns = 0;
};

DenseFactors::DenseFactors(std::int64_t first, int rows, int columns)
    : first_(first), rows_(rows), columns_(columns), threads_(1) {
  DTRAIN_CHECK(columns % kPatchColumns == 0, "sources are not whole panels");
}

void DenseFactors::append(DenseFactors&& next) { std::ranges::move(next.threads_, std::back_inserter(threads_)); }

// The range begins and ends within rows: what it has of its first row, its whole rows, and what it has of its last one.
void DenseFactors::add_up(std::span<const DeferredFloats* const> of, std::int64_t first, std::span<float> out) const {
  std::vector<const DenseFactors*> leaves;
  for (const DeferredFloats* each : of) {
    leaves.push_back(dynamic_cast<const DenseFactors*>(each));
    DTRAIN_CHECK(leaves.back() && leaves.back()->part() == part() && leaves.back()->columns_ == columns_,
                 "leaves of another layer");
  }
  const auto end = first - first_ + static_cast<std::int64_t>(out.size());
  DTRAIN_CHECK(first >= first_ && end <= part().size, "these floats are not deferred");
  float* to = out.data();
  for (std::int64_t at = first - first_; at < end;) {
    const int row = static_cast<int>(at / columns_), column = static_cast<int>(at % columns_);
    const std::int64_t left = end - at;
    const bool has_whole_rows = column == 0 && left >= columns_;
    const Block block{
        .row = row,
        .rows = has_whole_rows ? static_cast<int>(left / columns_) : 1,
        .column = column,
        .columns = has_whole_rows ? columns_ : static_cast<int>(std::min<std::int64_t>(left, columns_ - column))};
    write(leaves, block, to);
    const std::int64_t written = std::int64_t{block.rows} * block.columns;
    at += written;
    to += written;
  }
}

// Rows follow each other in `out`. Tiles begin at whole panels; of those at the block's ends a part is written.
void DenseFactors::write(Leaves leaves, const Block& block, float* out) {
  const int end = block.column + block.columns;
  for (int panel = block.column / kPatchColumns * kPatchColumns; panel < end; panel += kPatchColumns) {
    const int from = std::max(panel, block.column), to = std::min(panel + kPatchColumns, end);
    for (int row = 0; row < block.rows; row += kPatchRows) {
      const Block tile{block.row + row, std::min(kPatchRows, block.rows - row), panel, kPatchColumns};
      alignas(kAlignment) float sums[kPatchFloats];
      sum_of_leaves(leaves, tile, sums);
      for (int r = 0; r < tile.rows; ++r) {
        std::memcpy(out + std::int64_t{row + r} * block.columns + (from - block.column),
                    sums + r * kPatchColumns + (from - panel), sizeof(float) * static_cast<std::size_t>(to - from));
      }
    }
  }
}

void DenseFactors::sum_of_leaves(Leaves leaves, const Block& tile, float* sums) {
  if (leaves.size() == 1) return leaves.front()->sum_of_threads(tile, sums);
  const std::size_t half = leaves.size() / 2;
  alignas(kAlignment) float right[kPatchFloats];
  sum_of_leaves(leaves.first(half), tile, sums);
  sum_of_leaves(leaves.subspan(half), tile, right);
  select_kernels().accumulate(right, sums, tile.rows * kPatchColumns);
}

void DenseFactors::sum_of_threads(const Block& tile, float* sums) const {
  sum_of_samples(threads_.front(), tile, sums);
  for (const Thread& thread : std::span(threads_).subspan(1)) {
    alignas(kAlignment) float next[kPatchFloats];
    sum_of_samples(thread, tile, next);
    select_kernels().accumulate(next, sums, tile.rows * kPatchColumns);
  }
}

void DenseFactors::sum_of_samples(const Thread& thread, const Block& tile, float* sums) const {
  if (thread.empty()) std::fill_n(sums, tile.rows * kPatchColumns, 0.0f);
  for (const Chunk& chunk : thread) {
    fused_kernels().product({.rows = tile.rows,
                             .inner = chunk.count,
                             .columns = kPatchColumns,
                             .left = chunk.gradient.get() + tile.row,
                             .left_row = 1,
                             .left_inner = rows_,
                             .right = chunk.source.get() + tile.column,
                             .right_inner = columns_,
                             .right_panel = kPatchColumns,
                             .out = sums,
                             .out_row = kPatchColumns,
                             .adds = &chunk != &thread.front()});
  }
}

}  // namespace dtrain::backend::cpu
