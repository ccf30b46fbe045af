// Sums over the rows of a tensor [rows, c], by channel. The rows are cut into parts; a first kernel sums each part,
// FoldParts makes few parts of many, and the kernel that needs the total adds the last ones: FoldedSums is the three.
// Sums of a part lie as [part][width], width = channels x the number of kinds of sums. Also what kernels share that go
// through rows in order: a thread has the channels of one Pack, in some of the rows, so what belongs to a channel is
// read once for all rows.
#pragma once

#include <algorithm>
#include <type_traits>

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

// How a block of a native kernel shares a sum over rows: it has `packs` of a row, a whole line of the cache where they
// are as many, in as many parts of the rows as it has threads for. It leaves two folded parts: other kernels, which
// share a tile among all processors, share more evenly where these are small.
struct SumTile {
  static constexpr std::int32_t kThreads = 256, kWidest = 8, kFolds = 2;
  std::int32_t packs;
  std::int32_t tiles;  // that make a row
  DTRAIN_KERNEL constexpr std::int32_t parts_per_fold() const { return kThreads / kFolds / packs; }
};
DTRAIN_KERNEL constexpr SumTile sum_tile(std::int64_t packs_in_row) {
  const std::int64_t tiles = packs_of(packs_in_row, SumTile::kWidest);
  return {static_cast<std::int32_t>(packs_of(packs_in_row, tiles)), static_cast<std::int32_t>(tiles)};
}

// A part has at least so many rows, so that its sums are few beside what they are of.
constexpr std::int64_t kFewestRows = 32;
// The threads of a tile: about 64 Ki, what an H100 runs at once, with wide reads, several at a time: as many bytes
// under way as it takes to keep its memory busy. So many for each tile, since native kernels have one tile after the
// other on the whole chip.
constexpr std::int32_t kMostFolds = 512;

// At least one row. Parts grow with the rows.
constexpr RowParts cut_rows(std::int64_t rows, std::int64_t packs_in_row) {
  const SumTile tile = sum_tile(packs_in_row);
  const std::int64_t parts = std::max<std::int64_t>(1, packs_of(rows, kFewestRows));
  RowParts cut{.rows = rows, .parts_per_fold = tile.parts_per_fold()};
  cut.parts = static_cast<std::int32_t>(std::min<std::int64_t>(parts, kMostFolds * cut.parts_per_fold));
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

// The channels of one Pack in rows of c. Where c is a multiple of the Pack's size, all of it moves at once; Whole: it
// is known to be one.
template <typename T, bool Whole = false>
struct Channels {
  static constexpr int size = Pack<T>::size;
  using Bytes = std::conditional_t<size == sizeof(std::uint64_t), std::uint64_t, std::uint32_t>;
  static_assert(sizeof(Bytes) == size);
  std::int64_t first;
  std::int32_t c;

  DTRAIN_KERNEL bool whole() const { return Whole || c % size == 0; }
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
  // One byte a channel: all of a Pack's in one move.
  DTRAIN_KERNEL void load_words(const std::uint8_t* from, std::uint8_t (&to)[size]) const {
    Bytes bytes = 0;
    if (whole()) {
      bytes = *reinterpret_cast<const Bytes*>(from + first);
    } else {
      DTRAIN_UNROLL
      for (int k = 0; k < size; ++k) bytes |= Bytes{first + k < c ? from[first + k] : std::uint8_t{0}} << 8 * k;
    }
    DTRAIN_UNROLL
    for (int k = 0; k < size; ++k) to[k] = static_cast<std::uint8_t>(bytes >> 8 * k);
  }
  DTRAIN_KERNEL void store_words(const std::uint8_t (&from)[size], std::uint8_t* to) const {
    Bytes bytes = 0;
    DTRAIN_UNROLL
    for (int k = 0; k < size; ++k) bytes |= Bytes{from[k]} << 8 * k;
    if (whole()) {
      *reinterpret_cast<Bytes*>(to + first) = bytes;
      return;
    }
    DTRAIN_UNROLL
    for (int k = 0; k < size; ++k) {
      if (first + k < c) to[first + k] = from[k];
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

// What thread i < 2^32 has, where neighbours have neighbouring channels: a GPU divides 32 bits several times as fast as
// 64.
template <typename T, bool Whole = false>
struct ChannelsOfPart {
  std::int64_t part, pack;
  Channels<T, Whole> channels;
  DTRAIN_KERNEL ChannelsOfPart(std::int64_t i, std::int32_t c)
      : part(static_cast<std::uint32_t>(i) / packs_in_row(c)),
        pack(static_cast<std::uint32_t>(i) - static_cast<std::uint32_t>(part) * packs_in_row(c)),
        channels{pack * Pack<T>::size, c} {}
  DTRAIN_KERNEL ChannelsOfPart(std::int64_t of_part, std::int64_t of_pack, std::int32_t c)
      : part(of_part), pack(of_pack), channels{pack * Pack<T>::size, c} {}

 private:
  DTRAIN_KERNEL static std::uint32_t packs_in_row(std::int32_t c) {
    return (static_cast<std::uint32_t>(c) + Pack<T>::size - 1) / Pack<T>::size;
  }
};

// Parts are added in groups, and the groups in order: several threads may have a group each. What is loaded of a group
// is under way at the same time.
constexpr std::int32_t kSumGroup = 16;
DTRAIN_KERNEL constexpr std::int32_t sum_groups(std::int32_t parts) { return (parts + kSumGroup - 1) / kSumGroup; }

// load(part), a float, for part < parts.
template <typename Load>
DTRAIN_KERNEL double sum_of_group(std::int32_t group, std::int32_t parts, Load load) {
  const std::int32_t first = group * kSumGroup;
  float some[kSumGroup];
  DTRAIN_UNROLL
  for (std::int32_t k = 0; k < kSumGroup; ++k) some[k] = first + k < parts ? load(first + k) : 0.0f;
  double sum = 0;
  DTRAIN_UNROLL
  for (std::int32_t k = 0; k < kSumGroup; ++k) sum += some[k];
  return sum;
}
template <typename Load>
DTRAIN_KERNEL double sum_in_order(std::int32_t parts, Load load) {
  double sum = 0;
  for (std::int32_t group = 0; group < sum_groups(parts); ++group) sum += sum_of_group(group, parts, load);
  return sum;
}
DTRAIN_KERNEL inline double sum_of_parts(const float* in, std::int32_t parts, std::int32_t width, std::int64_t column) {
  return sum_in_order(parts, [&](std::int32_t part) { return in[std::int64_t{part} * width + column]; });
}

// What a thread of a kernel that sums has in the end: kinds of sums of one Pack of channels, in its part.
template <typename T, int Kinds>
struct PartSums {
  using Value = T;
  static constexpr int kinds = Kinds;
  float values[Kinds][Pack<T>::size];
  DTRAIN_KERNEL void store(const ChannelsOfPart<T>& at, float* out) const {
    float* const here = out + at.part * Kinds * at.channels.c;
    DTRAIN_UNROLL
    for (int kind = 0; kind < Kinds; ++kind) {
      at.channels.store_words(values[kind], here + std::int64_t{kind} * at.channels.c);
    }
  }
};

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
  using Result = PartSums<T, 1>;
  DTRAIN_KERNEL std::int32_t channels() const { return c; }
  DTRAIN_KERNEL std::int64_t threads() const { return cut.parts * packs_of(c, Pack<T>::size); }
  DTRAIN_KERNEL Result sums_at(const ChannelsOfPart<T>& at) const {
    constexpr int kAtOnce = 8;
    Result sums = {};
    Pack<T> packs[kAtOnce];
    for_rows<kAtOnce>(
        cut, at.part, [&](int k, std::int64_t row) { packs[k] = at.channels.load(x, row); },
        [&](int k, std::int64_t) {
          DTRAIN_UNROLL
          for (int j = 0; j < Pack<T>::size; ++j) sums.values[0][j] += widen(packs[k].values[j]);
        });
    return sums;
  }
  DTRAIN_KERNEL void operator()(std::int64_t i) const {
    const ChannelsOfPart<T> at(i, c);
    sums_at(at).store(at, out);
  }
};

// to[column] = the total. Thread = column.
struct StoreSums {
  const float* in;
  float* to;
  std::int32_t parts, width;
  DTRAIN_KERNEL std::int64_t threads() const { return width; }
  DTRAIN_KERNEL void finish(std::int64_t i, const double (&totals)[1]) const { to[i] = static_cast<float>(totals[0]); }
  DTRAIN_KERNEL void operator()(std::int64_t i) const { finish(i, {sum_of_parts(in, parts, width, i)}); }
};

// Sums, and what is made of their totals: by definition these three kernels in a row, `finish` reading what `fold`
// left. A native kernel (gpu/native) does it in one launch and needs neither memory of the parts nor that its threads
// start in any order.
template <typename Sums, typename Finish>
struct FoldedSums {
  Sums sums;
  FoldParts fold;
  Finish finish;
  std::uint32_t* tickets;  // one for each SumTile of a row; 0 whenever this does not run
};
template <typename T>
using ColumnTotals = FoldedSums<ColumnSums<T>, StoreSums>;

}  // namespace dtrain::backend::cuda
