// The kernel of gpu/native/product.cu without a GPU: whole products, by the functions that the kernel itself calls and
// by what the documents of CUDA and PTX say that TMA and wgmma do with what they are given.
#include "product.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "gpu/native/product_layout.hpp"

namespace dtrain::backend::cuda {
namespace {

using Value = std::uint16_t;
constexpr Direction kProductDirections[] = {Direction::forward, Direction::backward_data, Direction::backward_weights};
constexpr ProductTile kProductTiles[] = {{64}, {128}, {256}};

// Row-major, as it lies in global memory.
template <typename T>
struct Matrix {
  Matrix(std::int32_t r, std::int32_t c)
      : rows(r), columns(c), values(static_cast<std::size_t>(r) * static_cast<std::size_t>(c)) {}
  T& at(std::int32_t row, std::int32_t column) {
    return values[static_cast<std::size_t>(row) * static_cast<std::size_t>(columns) + static_cast<std::size_t>(column)];
  }
  bool has(std::int32_t row, std::int32_t column) const { return row < rows && column < columns; }
  std::int32_t rows, columns;
  std::vector<T> values;
};

// Shared memory of a block. What nothing wrote is NaN.
class Shared {
 public:
  explicit Shared(std::int32_t bytes) : bytes_(static_cast<std::size_t>(bytes), 0xff) {}
  void forget() { std::fill(bytes_.begin(), bytes_.end(), 0xff); }
  template <typename T>
  T read(std::uint32_t address) const {
    T value{};
    EXPECT_LE(address + sizeof value, bytes_.size());
    std::memcpy(&value, bytes_.data() + address, sizeof value);
    return value;
  }
  template <typename T>
  void write(std::uint32_t address, T value) {
    ASSERT_LE(address + sizeof value, bytes_.size());
    std::memcpy(bytes_.data() + address, &value, sizeof value);
  }

 private:
  std::vector<unsigned char> bytes_;
};

// "Swizzle modes": with 128 bytes, the 16-byte chunk c of row r of a pattern of eight rows lies at chunk c xor r.
std::uint32_t place_of_chunk(std::uint32_t address) {
  const std::uint32_t row = address / 128 % 8, chunk = address / 16 % 8;
  return address / 128 * 128 + (chunk ^ row) * 16 + address % 16;
}

// TMA's copy of a box: rows of 128 bytes, zeros for what lies outside.
void load_box(Matrix<Value>& from, BoxPlace at, std::int32_t height, Shared& to, std::uint32_t address) {
  ASSERT_EQ(address % 1024, 0);
  ASSERT_LE(height, 256);
  for (std::int32_t row = 0; row < height; ++row) {
    for (std::int32_t column = 0; column < 64; ++column) {
      const bool inside = from.has(at.row + row, at.column + column);
      const auto byte = static_cast<std::uint32_t>(row * 128 + column * 2);
      to.write<Value>(place_of_chunk(address + byte), inside ? from.at(at.row + row, at.column + column) : Value{0});
    }
  }
}

void store_box(const Shared& from, std::uint32_t address, std::int32_t height, Matrix<Value>& to, BoxPlace at) {
  ASSERT_EQ(address % 1024, 0);
  for (std::int32_t row = 0; row < height; ++row) {
    for (std::int32_t column = 0; column < 64; ++column) {
      if (!to.has(at.row + row, at.column + column)) continue;
      const auto byte = static_cast<std::uint32_t>(row * 128 + column * 2);
      to.at(at.row + row, at.column + column) = from.read<Value>(place_of_chunk(address + byte));
    }
  }
}

// "Matrix descriptor format" and the canonical layouts of 128-byte swizzle, T = 8 values of 16 bits:
// K-major ((8, m), (T, 2)) : ((8T, SBO), (1, T)), MN-major ((T, 8, m), (8, k)) : ((1, T, LBO), (8T, SBO)).
Value operand_at(const Shared& memory, std::uint64_t descriptor, Major major, std::int32_t mn, std::int32_t k) {
  const auto field = [&](int first) { return static_cast<std::uint32_t>(descriptor >> first & 0x3fff) * 16; };
  const std::uint32_t start = field(0), leading = field(16), stride = field(32);
  EXPECT_EQ(descriptor >> 62, 1u) << "128 bytes are swizzled";
  EXPECT_EQ(descriptor >> 46 & 0xffff, 0u) << "no base offset, and nothing where nothing belongs";
  EXPECT_EQ(descriptor >> 14 & 3, 0u);
  EXPECT_EQ(descriptor >> 30 & 3, 0u);
  const auto at = static_cast<std::uint32_t>(mn), depth = static_cast<std::uint32_t>(k);
  const std::uint32_t byte = major == Major::k ? at / 8 * stride + at % 8 * 128 + depth * 2
                                               : at / 64 * leading + at % 64 * 2 + depth / 8 * stride + depth % 8 * 128;
  return memory.read<Value>(place_of_chunk(start + byte));
}

float wide(Value bits) { return widen(Bf16{bits}); }
Value narrowed(float value) {
  Bf16 narrow_value{};
  narrow(value, narrow_value);
  return narrow_value.bits;
}

// Whole numbers, so that sums are exact in any order.
Matrix<Value> numbers(std::int32_t rows, std::int32_t columns, std::uint32_t seed) {
  Matrix<Value> matrix(rows, columns);
  for (Value& value : matrix.values) {
    seed = seed * 1664525 + 1013904223;
    value = narrowed(static_cast<float>(static_cast<int>(seed >> 24) % 7 - 3));
  }
  return matrix;
}

// Launched like the kernel, with few blocks so that each does several tiles.
struct Emulated {
  Emulated(const ProductShape& of, const ProductTile& with, Direction to)
      : shape(of),
        tile(with),
        direction(to),
        cut(cut_product(of, with, to)),
        a(major_of_a(to) == Major::k ? numbers(of.m, of.k, 1) : numbers(of.k, of.m, 1)),
        b(major_of_b(to) == Major::k ? numbers(of.n, of.k, 2) : numbers(of.k, of.n, 2)),
        c(of.m, of.n),
        splits(static_cast<std::size_t>(cut.splits), Matrix<float>(of.m, of.n)),
        parts(2 * cut.m_tiles, 2 * of.n),
        shared(tile.shared_bytes()) {}

  void run(std::int32_t blocks) {
    for (std::int32_t block = 0; block < blocks; ++block) {
      for (std::int32_t index = block; index < cut.tiles(); index += blocks) one_tile(cut.at(index));
    }
  }

  void one_tile(const ProductCut::Place& place) {
    const Major of_a = major_of_a(direction), of_b = major_of_b(direction);
    const auto sums_of = static_cast<std::size_t>(tile.n / 2);
    std::vector<std::vector<float>> sums(2 * ProductTile::kGroup, std::vector<float>(sums_of, 0.0f));
    int stage = 0;
    for (std::int32_t block = 0; block < place.blocks; ++block, stage = (stage + 1) % tile.stages()) {
      shared.forget();
      const std::uint32_t at_a = ProductTile::kAlignment + static_cast<std::uint32_t>(stage * tile.stage_bytes());
      const std::uint32_t at_b = at_a + static_cast<std::uint32_t>(tile.a_bytes());
      const std::int32_t k = (place.first_block + block) * ProductTile::kK;
      std::int32_t bytes = load(a, of_a, ProductTile::kM, place.m * ProductTile::kM, k, at_a);
      bytes += load(b, of_b, tile.n, place.n * tile.n, k, at_b);
      EXPECT_EQ(bytes, tile.stage_bytes()) << "what the barrier of the stage waits for";
      for (int consumer = 0; consumer < ProductTile::kConsumers; ++consumer) {
        for (int step = 0; step < ProductTile::kK / ProductTile::kStepK; ++step) {
          multiply(operand_descriptor(of_a, at_a, consumer * ProductTile::kGroupM, step), of_a,
                   operand_descriptor(of_b, at_b, 0, step), of_b, sums.data() + consumer * ProductTile::kGroup);
        }
      }
    }
    for (int consumer = 0; consumer < ProductTile::kConsumers; ++consumer) {
      leave(place, consumer, sums.data() + consumer * ProductTile::kGroup);
    }
  }

  std::int32_t load(Matrix<Value>& from, Major major, std::int32_t extent, std::int32_t mn, std::int32_t k,
                    std::uint32_t to) {
    const OperandBoxes boxes = boxes_of(major, extent);
    for (std::int32_t box = 0; box < boxes.count; ++box) {
      load_box(from, box_at(major, box, mn, k), boxes.height, shared,
               to + static_cast<std::uint32_t>(box * boxes.bytes()));
    }
    return boxes.count * boxes.bytes();
  }

  // wgmma m64nNk16 of one warpgroup.
  void multiply(std::uint64_t a_of, Major of_a, std::uint64_t b_of, Major of_b, std::vector<float>* sums) {
    constexpr std::int32_t kK = ProductTile::kStepK;
    std::vector<float> left(static_cast<std::size_t>(64 * kK)), right(static_cast<std::size_t>(tile.n * kK));
    const auto index = [](std::int32_t mn, std::int32_t k) { return static_cast<std::size_t>(mn * kK + k); };
    for (std::int32_t k = 0; k < kK; ++k) {
      for (std::int32_t m = 0; m < 64; ++m) left[index(m, k)] = wide(operand_at(shared, a_of, of_a, m, k));
      for (std::int32_t n = 0; n < tile.n; ++n) right[index(n, k)] = wide(operand_at(shared, b_of, of_b, n, k));
    }
    for (std::int32_t thread = 0; thread < ProductTile::kGroup; ++thread) {
      for (std::int32_t accumulator = 0; accumulator < tile.n / 2; ++accumulator) {
        const AccumulatorPlace at = accumulator_at(thread, accumulator);
        for (std::int32_t k = 0; k < kK; ++k) {
          sums[thread][static_cast<std::size_t>(accumulator)] += left[index(at.row, k)] * right[index(at.column, k)];
        }
      }
    }
  }

  void leave(const ProductCut::Place& place, int consumer, const std::vector<float>* sums) {
    const std::int32_t row = place.m * ProductTile::kM + consumer * ProductTile::kGroupM, column = place.n * tile.n;
    shared.forget();
    const auto to = static_cast<std::uint32_t>(ProductTile::kAlignment + tile.stages() * tile.stage_bytes() +
                                               consumer * tile.result_bytes());
    for (std::int32_t thread = 0; thread < ProductTile::kGroup; ++thread) {
      for (std::int32_t k = 0; k < tile.n / 2; ++k) {
        const AccumulatorPlace at = accumulator_at(thread, k);
        const float sum = sums[thread][static_cast<std::size_t>(k)];
        if (leaves_splits(direction)) {
          Matrix<float>& split = splits[static_cast<std::size_t>(place.split)];
          if (split.has(row + at.row, column + at.column)) split.at(row + at.row, column + at.column) = sum;
        } else {
          shared.write<Value>(to + result_place(at.row, at.column), narrowed(sum));
        }
      }
    }
    if (leaves_splits(direction)) return;
    for (std::int32_t box = 0; box < tile.n / kBoxWidth; ++box) {
      store_box(shared, to + static_cast<std::uint32_t>(box * ProductTile::kGroupM * kSwizzledRow),
                ProductTile::kGroupM, c, {column + box * kBoxWidth, row});
    }
    if (direction == Direction::forward) leave_moments(row / ProductTile::kGroupM, column, sums);
  }

  // What store_moments() and fold_moments() of the kernel do.
  void leave_moments(std::int32_t part, std::int32_t column, const std::vector<float>* sums) {
    const std::int32_t n = tile.n;
    std::vector<std::vector<float>> of_warps(4, std::vector<float>(static_cast<std::size_t>(2 * n), std::nanf("")));
    for (std::int32_t warp = 0; warp < 4; ++warp) {
      std::vector<std::vector<float>> lanes(32, std::vector<float>(static_cast<std::size_t>(n / 2)));
      for (std::int32_t lane = 0; lane < 32; ++lane) {
        for (std::int32_t k = 0; k < n / 4; ++k) {
          const std::vector<float>& mine = sums[warp * 32 + lane];
          const auto upper = static_cast<std::size_t>(k / 2 * 4 + k % 2);
          const float first = wide(narrowed(mine[upper])), second = wide(narrowed(mine[upper + 2]));
          lanes[static_cast<std::size_t>(lane)][static_cast<std::size_t>(k)] = first + second;
          lanes[static_cast<std::size_t>(lane)][static_cast<std::size_t>(n / 4 + k)] = first * first + second * second;
        }
      }
      for (std::int32_t step = 0; step < kMomentSteps; ++step) {
        const auto half = static_cast<std::size_t>(n / 4 >> step);
        const auto before = lanes;
        for (std::int32_t lane = 0; lane < 32; ++lane) {
          const bool upper = (lane & moment_bit(step)) != 0;
          const auto& mine = before[static_cast<std::size_t>(lane)];
          const auto& other = before[static_cast<std::size_t>(lane ^ moment_bit(step))];
          for (std::size_t k = 0; k < half; ++k) {
            // The other lane gives what this one keeps.
            lanes[static_cast<std::size_t>(lane)][k] = upper ? mine[half + k] + other[half + k] : mine[k] + other[k];
          }
        }
      }
      for (std::int32_t lane = 0; lane < 32; ++lane) {
        for (std::int32_t k = 0; k < n / 16; ++k) {
          const MomentPlace at = n == 64    ? moment_at<64>(lane, k)
                                 : n == 128 ? moment_at<128>(lane, k)
                                            : moment_at<256>(lane, k);
          of_warps[static_cast<std::size_t>(warp)][static_cast<std::size_t>(at.kind * n + at.column)] =
              lanes[static_cast<std::size_t>(lane)][static_cast<std::size_t>(k)];
        }
      }
    }
    for (std::int32_t at = 0; at < 2 * n; ++at) {
      float sum = 0;
      for (const auto& warp : of_warps) sum += warp[static_cast<std::size_t>(at)];
      const std::int32_t here = column + at % n;
      if (here < shape.n) parts.at(part, at / n * shape.n + here) = sum;
    }
  }

  const ProductShape shape;
  const ProductTile tile;
  const Direction direction;
  const ProductCut cut;
  Matrix<Value> a, b, c;
  std::vector<Matrix<float>> splits;
  Matrix<float> parts;
  Shared shared;
};

float plain(Emulated& product, std::int32_t m, std::int32_t n) {
  float sum = 0;
  for (std::int32_t k = 0; k < product.shape.k; ++k) {
    sum += wide(major_of_a(product.direction) == Major::k ? product.a.at(m, k) : product.a.at(k, m)) *
           wide(major_of_b(product.direction) == Major::k ? product.b.at(n, k) : product.b.at(k, n));
  }
  return sum;
}

void expect_the_product(const ProductShape& shape, const ProductTile& tile, Direction direction) {
  Emulated product(shape, tile, direction);
  product.run(3);
  std::vector<double> moments(static_cast<std::size_t>(2 * shape.n));
  for (std::int32_t m = 0; m < shape.m; ++m) {
    for (std::int32_t n = 0; n < shape.n; ++n) {
      const float sum = plain(product, m, n);
      float found = 0;
      if (leaves_splits(direction)) {
        for (Matrix<float>& split : product.splits) found += split.at(m, n);
        ASSERT_EQ(found, sum) << m << ", " << n;
      } else {
        ASSERT_EQ(product.c.at(m, n), narrowed(sum)) << m << ", " << n;
        const double rounded = wide(narrowed(sum));
        moments[static_cast<std::size_t>(n)] += rounded;
        moments[static_cast<std::size_t>(shape.n + n)] += rounded * rounded;
      }
    }
  }
  if (direction != Direction::forward) return;
  for (std::int32_t at = 0; at < 2 * shape.n; ++at) {
    double sum = 0;
    for (std::int32_t part = 0; part < product.parts.rows; ++part) sum += product.parts.at(part, at);
    ASSERT_NEAR(sum, moments[static_cast<std::size_t>(at)], 1e-6 * std::abs(sum)) << at;
  }
}

TEST(CudaProduct, IsThePlainProductInEachDirectionAndAtEachEdge) {
  const ProductShape shapes[] = {{1, 8, 8},      {63, 24, 24},   {64, 64, 64},   {100, 72, 8},   {128, 128, 136},
                                 {129, 264, 72}, {200, 136, 24}, {256, 200, 64}, {300, 256, 128}};
  for (const Direction direction : kProductDirections) {
    for (const ProductShape& shape : shapes) {
      for (const ProductTile& tile : kProductTiles) {
        SCOPED_TRACE(std::string(direction_name(direction)) + " " + engine_name(tile) + " " + std::to_string(shape.m) +
                     " " + std::to_string(shape.n) + " " + std::to_string(shape.k));
        expect_the_product(shape, tile, direction);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(CudaProduct, AddsUpALongSumInSplits) {
  const ProductShape shape{24, 72, 1200};
  EXPECT_GT(cut_product(shape, {64}, Direction::backward_weights).splits, 1);
  expect_the_product(shape, {64}, Direction::backward_weights);
}

TEST(CudaProduct, LeavesAThousandClasses) { expect_the_product({40, 1000, 64}, {256}, Direction::forward); }

TEST(CudaProduct, SwizzlesAsTmaDoes) {
  for (std::uint32_t byte = 0; byte < 8192; ++byte) EXPECT_EQ(swizzled(byte), place_of_chunk(byte));
}

}  // namespace
}  // namespace dtrain::backend::cuda
