// Sums over the rows of a tensor [rows, c], by channel. The rows are cut into parts; a first body sums each part
// (thread = part and channel, so neighbours read neighbours), FoldParts makes few parts of many, and whoever needs the
// total adds the last ones. Sums of a part lie as [part][width], width = channels x the number of kinds of sums.
#pragma once

#include <algorithm>

#include "../body.hpp"

namespace dtrain::backend::cuda {

// How rows are cut: a function of the shape alone, so that bits do not depend on the GPU.
struct RowParts {
  std::int64_t rows = 0;
  std::int64_t rows_per_part = 1;
  std::int32_t parts = 1;
  std::int32_t folded_parts = 1;  // after FoldParts
  std::int32_t parts_per_fold = 1;

  DTRAIN_BODY std::int64_t first(std::int64_t part) const { return part * rows_per_part; }
  DTRAIN_BODY std::int64_t end(std::int64_t part) const {
    const std::int64_t end = (part + 1) * rows_per_part;
    return end < rows ? end : rows;
  }
};

// Parts that are folded into one number by a single thread at the end.
constexpr std::int64_t kMostFoldedParts = 64;

// About 128 Ki threads, each at least 16 rows. Grows with the rows.
inline std::int64_t most_parts(std::int64_t rows, std::int64_t channels) {
  constexpr std::int64_t kThreads = 1 << 17, kFewestRows = 16;
  return std::max<std::int64_t>(1, std::min(packs_of(rows, kFewestRows), kThreads / channels));
}

// At least one row.
inline RowParts cut_rows(std::int64_t rows, std::int64_t channels) {
  RowParts cut{.rows = rows, .rows_per_part = packs_of(rows, most_parts(rows, channels))};
  cut.parts = static_cast<std::int32_t>(packs_of(rows, cut.rows_per_part));
  cut.parts_per_fold = static_cast<std::int32_t>(packs_of(cut.parts, kMostFoldedParts));
  cut.folded_parts = static_cast<std::int32_t>(packs_of(cut.parts, cut.parts_per_fold));
  return cut;
}

// Thread = folded part and column: in[part][width] -> out[folded part][width].
struct FoldParts {
  const float* in;
  float* out;
  RowParts cut;
  std::int32_t width;
  DTRAIN_BODY std::int64_t threads() const { return std::int64_t{cut.folded_parts} * width; }
  DTRAIN_BODY void operator()(std::int64_t i) const {
    const std::int64_t fold = i / width, column = i % width;
    const std::int64_t first = fold * cut.parts_per_fold;
    double sum = 0;
    for (std::int64_t part = first; part < first + cut.parts_per_fold && part < cut.parts; ++part) {
      sum += in[part * width + column];
    }
    out[i] = static_cast<float>(sum);
  }
};

DTRAIN_BODY inline double sum_of_parts(const float* in, std::int32_t parts, std::int32_t width, std::int64_t column) {
  double sum = 0;
  for (std::int32_t part = 0; part < parts; ++part) sum += in[std::int64_t{part} * width + column];
  return sum;
}

// out[part][channel] = sum of the part's rows of x.
template <typename T>
struct ColumnSums {
  const T* x;
  float* out;
  RowParts cut;
  std::int32_t c;
  DTRAIN_BODY std::int64_t threads() const { return std::int64_t{cut.parts} * c; }
  DTRAIN_BODY void operator()(std::int64_t i) const {
    const std::int64_t part = i / c, channel = i % c;
    float sum = 0;
    for (std::int64_t row = cut.first(part); row < cut.end(part); ++row) sum += widen(x[row * c + channel]);
    out[i] = sum;
  }
};

// to[column] = the total. Thread = column.
struct StoreSums {
  const float* in;
  float* to;
  std::int32_t parts, width;
  DTRAIN_BODY std::int64_t threads() const { return width; }
  DTRAIN_BODY void operator()(std::int64_t i) const { to[i] = static_cast<float>(sum_of_parts(in, parts, width, i)); }
};

}  // namespace dtrain::backend::cuda
