// Sums over the rows of a tensor [rows, c], by channel. The rows are cut into parts; a first kernel sums each part,
// FoldParts makes few parts of many, and the kernel that needs the total adds the last ones. Sums of a part lie as
// [part][width], width = channels x the number of kinds of sums. Also what kernels share that go through rows in order:
// a thread has the channels of one Pack, in some of the rows, so what belongs to a channel is read once for all rows.
#pragma once

#include <algorithm>

#include "../kernel.hpp"

namespace dtrain::backend::cuda {

// How rows are cut: a function of the shape alone, so that bits do not depend on the GPU. Part p has every parts-th row
// from p on, so that threads that run at the same time read what lies side by side.
struct RowParts {
  std::int64_t rows = 0;
  std::int32_t parts = 1;
  std::int32_t folded_parts = 1;  // after FoldParts
  std::int32_t parts_per_fold = 1;
};

// Parts that are folded into one number by a single thread at the end.
constexpr std::int64_t kMostFoldedParts = 64;

// About 64 Ki threads, what an H100 runs at once, with wide reads, several at a time: as many bytes under way as it
// takes to keep its memory busy. A part has at least 32 rows, so that its sums are few beside what they are of. Grows
// with the rows.
inline std::int64_t most_parts(std::int64_t rows, std::int64_t threads_of_part) {
  constexpr std::int64_t kThreads = 1 << 16, kFewestRows = 32;
  return std::max<std::int64_t>(1, std::min(packs_of(rows, kFewestRows), kThreads / threads_of_part));
}

// At least one row.
inline RowParts cut_rows(std::int64_t rows, std::int64_t threads_of_part) {
  RowParts cut{.rows = rows, .parts = static_cast<std::int32_t>(most_parts(rows, threads_of_part))};
  cut.parts_per_fold = static_cast<std::int32_t>(packs_of(cut.parts, kMostFoldedParts));
  cut.folded_parts = static_cast<std::int32_t>(packs_of(cut.parts, cut.parts_per_fold));
  return cut;
}

// Calls load(k, row) for some of a part's rows, then use(k, row) for the same ones, k < AtOnce: what is loaded for all
// of them is under way at the same time.
template <int AtOnce, typename Load, typename Use>
DTRAIN_KERNEL void for_rows(const RowParts& cut, std::int64_t part, Load load, Use use) {
  for (std::int64_t first = part; first < cut.rows; first += std::int64_t{AtOnce} * cut.parts) {
    DTRAIN_UNROLL
    for (int k = 0; k < AtOnce; ++k) {
      const std::int64_t row = first + std::int64_t{k} * cut.parts;
      if (row < cut.rows) load(k, row);
    }
    DTRAIN_UNROLL
    for (int k = 0; k < AtOnce; ++k) {
      const std::int64_t row = first + std::int64_t{k} * cut.parts;
      if (row < cut.rows) use(k, row);
    }
  }
}

// The channels of one Pack in rows of c. Where c is a multiple of the Pack's size, all of it moves at once.
template <typename T>
struct Channels {
  static constexpr int size = Pack<T>::size;
  std::int64_t first;
  std::int32_t c;

  DTRAIN_KERNEL bool whole() const { return c % size == 0; }
  DTRAIN_KERNEL Pack<T> load(const T* from, std::int64_t row) const {
    const T* const here = from + row * c + first;
    if (whole()) return *reinterpret_cast<const Pack<T>*>(here);
    Pack<T> pack{};
    DTRAIN_UNROLL
    for (int k = 0; k < size; ++k) {
      if (first + k < c) pack.values[k] = here[k];
    }
    return pack;
  }
  DTRAIN_KERNEL void store(const Pack<T>& pack, T* to, std::int64_t row) const {
    T* const here = to + row * c + first;
    if (whole()) return store_whole(pack, here);
    DTRAIN_UNROLL
    for (int k = 0; k < size; ++k) {
      if (first + k < c) here[k] = pack.values[k];
    }
  }
  // One float, or one position, a channel.
  template <typename Word>
  DTRAIN_KERNEL void load_words(const Word* from, Word (&to)[size]) const {
    static_assert(sizeof(Word) == sizeof(float));
    DTRAIN_UNROLL
    for (int k = 0; k < size; k += Pack<Word>::size) {
      Pack<Word> pack{};
      if (whole()) {
        pack = *reinterpret_cast<const Pack<Word>*>(from + first + k);
      } else {
        DTRAIN_UNROLL
        for (int j = 0; j < Pack<Word>::size; ++j) pack.values[j] = first + k + j < c ? from[first + k + j] : Word{};
      }
      DTRAIN_UNROLL
      for (int j = 0; j < Pack<Word>::size; ++j) to[k + j] = pack.values[j];
    }
  }
  template <typename Word>
  DTRAIN_KERNEL void store_words(const Word (&from)[size], Word* to) const {
    static_assert(sizeof(Word) == sizeof(float));
    DTRAIN_UNROLL
    for (int k = 0; k < size; k += Pack<Word>::size) {
      Pack<Word> pack;
      DTRAIN_UNROLL
      for (int j = 0; j < Pack<Word>::size; ++j) pack.values[j] = from[k + j];
      if (whole()) {
        store_whole(pack, to + first + k);
      } else {
        DTRAIN_UNROLL
        for (int j = 0; j < Pack<Word>::size; ++j) {
          if (first + k + j < c) to[first + k + j] = pack.values[j];
        }
      }
    }
  }
};

template <typename T>
DTRAIN_KERNEL void store_narrow(const Channels<T>& channels, const float (&from)[Channels<T>::size], T* to,
                                std::int64_t row) {
  Pack<T> pack;
  DTRAIN_UNROLL
  for (int k = 0; k < Channels<T>::size; ++k) narrow(from[k], pack.values[k]);
  channels.store(pack, to, row);
}

// What thread i has, where neighbours have neighbouring channels.
template <typename T>
struct ChannelsOfPart {
  std::int64_t part, pack;
  Channels<T> channels;
  DTRAIN_KERNEL ChannelsOfPart(std::int64_t i, std::int32_t c)
      : part(i / packs_of(c, Pack<T>::size)),
        pack(i - part * packs_of(c, Pack<T>::size)),
        channels{pack * Pack<T>::size, c} {}
};

// Adds in order, but first loads several: so they are under way at the same time.
DTRAIN_KERNEL inline double sum_of_parts(const float* in, std::int32_t parts, std::int32_t width, std::int64_t column) {
  constexpr std::int32_t kAtOnce = 16;
  double sum = 0;
  for (std::int32_t first = 0; first < parts; first += kAtOnce) {
    float some[kAtOnce];
    DTRAIN_UNROLL
    for (std::int32_t k = 0; k < kAtOnce; ++k) {
      some[k] = first + k < parts ? in[std::int64_t{first + k} * width + column] : 0.0f;
    }
    DTRAIN_UNROLL
    for (std::int32_t k = 0; k < kAtOnce; ++k) sum += some[k];
  }
  return sum;
}

// Thread = folded part and column: in[part][width] -> out[folded part][width].
struct FoldParts {
  const float* in;
  float* out;
  RowParts cut;
  std::int32_t width;
  DTRAIN_KERNEL std::int64_t threads() const { return std::int64_t{cut.folded_parts} * width; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const std::int64_t fold = i / width, column = i % width;
    const std::int32_t first = static_cast<std::int32_t>(fold) * cut.parts_per_fold, rest = cut.parts - first;
    const std::int32_t parts = rest < cut.parts_per_fold ? rest : cut.parts_per_fold;
    out[i] = static_cast<float>(sum_of_parts(in + std::int64_t{first} * width, parts, width, column));
  }
};

// out[part][channel] = sum of the part's rows of x. Thread = part and Pack of channels.
template <typename T>
struct ColumnSums {
  const T* x;
  float* out;
  RowParts cut;
  std::int32_t c;
  DTRAIN_KERNEL std::int64_t threads() const { return cut.parts * packs_of(c, Pack<T>::size); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    constexpr int kAtOnce = 8;
    const ChannelsOfPart<T> at(i, c);
    float sums[Pack<T>::size] = {};
    Pack<T> packs[kAtOnce];
    for_rows<kAtOnce>(
        cut, at.part, [&](int k, std::int64_t row) { packs[k] = at.channels.load(x, row); },
        [&](int k, std::int64_t) {
          DTRAIN_UNROLL
          for (int j = 0; j < Pack<T>::size; ++j) sums[j] += widen(packs[k].values[j]);
        });
    at.channels.store_words(sums, out + at.part * c);
  }
};

// to[column] = the total. Thread = column.
struct StoreSums {
  const float* in;
  float* to;
  std::int32_t parts, width;
  DTRAIN_KERNEL std::int64_t threads() const { return width; }
  DTRAIN_KERNEL void operator()(std::int64_t i) const { to[i] = static_cast<float>(sum_of_parts(in, parts, width, i)); }
};

}  // namespace dtrain::backend::cuda
