// The native kernel of muon's products, replayed block by block, warp by warp: what its definition computes. ldmatrix
// and mma.m16n8k16 are played as the PTX ISA describes which lane holds which element; that a GPU does the same, only
// tests/gpu/native_test.cpp can show.
#include "gpu/native/muon_product_block.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <set>

#include "call.hpp"
#include "random_values.hpp"

namespace dtrain::backend::cuda {
namespace {

constexpr std::int32_t kLanes = 32;
template <typename T>
using Registers = std::array<std::array<std::array<T, 2>, 4>, kLanes>;  // [lane][register][half]

// Lane l names line l % 8 of matrix l / 8, eight elements. Register r of a lane has two neighbours of matrix r: line
// lane / 4, elements 2 * (lane % 4) and the next one; transposed, element lane / 4 of these two lines.
template <typename T>
Registers<T> ldmatrix_x4(const unsigned char* stage, const std::array<std::int32_t, kLanes>& places, bool transposed) {
  Registers<T> registers;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    for (std::size_t matrix = 0; matrix < 4; ++matrix) {
      for (std::size_t half = 0; half < 2; ++half) {
        const std::size_t group = lane / 4, other = lane % 4 * 2 + half;
        const std::size_t line = transposed ? other : group, element = transposed ? group : other;
        std::memcpy(&registers[lane][matrix][half],
                    stage + places[8 * matrix + line] + static_cast<std::ptrdiff_t>(element * sizeof(T)), sizeof(T));
      }
    }
  }
  return registers;
}

// a: register r has row lane / 4 + 8 * (r % 2) and depth 2 * (lane % 4) + 8 * (r / 2); b: two registers from `first`
// on, depth 2 * (lane % 4) + 8 * r and column lane / 4; c: value v has row lane / 4 + 8 * (v / 2), column 2 * (lane %
// 4) + v % 2.
template <typename T, typename SumsOf>
void mma_m16n8k16(const Registers<T>& a, const Registers<T>& b, std::size_t first, SumsOf sums_of) {
  float left[16][16], right[16][8];  // [row][depth], [depth][column]
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    for (std::size_t r = 0; r < 4; ++r) {
      for (std::size_t half = 0; half < 2; ++half) {
        left[lane / 4 + 8 * (r % 2)][2 * (lane % 4) + 8 * (r / 2) + half] = widen(a[lane][r][half]);
        if (r < 2) right[2 * (lane % 4) + 8 * r + half][lane / 4] = widen(b[lane][first + r][half]);
      }
    }
  }
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    for (std::size_t v = 0; v < 4; ++v) {
      double sum = 0;
      for (std::size_t k = 0; k < 16; ++k) {
        sum += static_cast<double>(left[lane / 4 + 8 * (v / 2)][k]) * right[k][2 * (lane % 4) + v % 2];
      }
      sums_of(static_cast<std::int32_t>(lane))[v] += static_cast<float>(sum);
    }
  }
}

template <typename B>
void multiply_on_tensor_cores(std::int32_t warp, const unsigned char* stage, std::vector<typename B::Sums>& sums) {
  using T = typename B::T;
  const auto matrices = [&](bool of_b, std::int32_t x, std::int32_t k) {
    std::array<std::int32_t, kLanes> places{};
    for (std::int32_t lane = 0; lane < kLanes; ++lane) {
      places[static_cast<std::size_t>(lane)] = B::fragment_place(of_b, lane, x, k);
    }
    return ldmatrix_x4<T>(stage, places, B::by_depth);
  };
  for (std::int32_t k = 0; k < B::kDepth; k += 16) {
    const Registers<T> b = matrices(true, B::warp_column(warp), k);
    for (int row = 0; row < B::kRowBlocks; ++row) {
      const Registers<T> a = matrices(false, B::warp_row(warp) + row * 16, k);
      for (int column = 0; column < B::kColumnBlocks; ++column) {
        mma_m16n8k16(a, b, static_cast<std::size_t>(2 * column), [&](std::int32_t lane) {
          return sums[static_cast<std::size_t>(warp * kLanes + lane)][row][column];
        });
      }
    }
  }
}

template <typename Product>
void run_by_blocks(const Product& product, std::int64_t tiles) {
  using B = MuonProductBlock<Product>;
  alignas(128) static unsigned char memory[B::kBytes];
  for (std::int64_t tile = tiles - 1; tile >= 0; --tile) {
    const B block(product, tile);
    std::memset(memory, 0xff, sizeof memory);  // NaN
    std::vector<typename B::Sums> sums(B::kThreads);
    for (std::int32_t step = 0; step < block.steps(); ++step) {
      unsigned char* const stage = memory + step % B::kStages * B::kStageBytes;
      for (const bool of_b : {false, true}) {
        for (std::int32_t index = 0; index < B::kChunks; ++index) {
          const auto chunk = block.chunk(of_b, step, index);
          EXPECT_EQ(chunk.place % B::kChunkBytes, 0);
          if (chunk.there) {
            std::memcpy(stage + chunk.place, chunk.from, B::kChunkBytes);
          } else {
            std::memset(stage + chunk.place, 0, B::kChunkBytes);
          }
        }
      }
      if constexpr (std::is_same_v<typename B::T, float>) {
        for (std::int32_t thread = 0; thread < B::kThreads; ++thread) {
          B::multiply(thread, stage, sums[static_cast<std::size_t>(thread)]);
        }
      } else {
        for (std::int32_t warp = 0; warp < B::kThreads / kLanes; ++warp) {
          multiply_on_tensor_cores<B>(warp, stage, sums);
        }
      }
    }
    for (std::int32_t thread = 0; thread < B::kThreads; ++thread) {
      block.store(thread, sums[static_cast<std::size_t>(thread)]);
    }
  }
}

template <typename Product>
void run_by_definition(const Product& product) {
  for (std::int64_t i = product.threads() - 1; i >= 0; --i) product(i);
}

// Matrices smaller and larger than a tile and a step, with rows that no tile ends with.
std::vector<MuonMatrix> some_matrices() {
  std::vector<MuonMatrix> matrices;
  MuonMatrix next;
  for (const auto& [high, low] : {std::pair{1, 8}, {9, 8}, {64, 64}, {150, 72}, {65, 16}, {200, 136}}) {
    MuonMatrix& m = matrices.emplace_back(next);
    m.rows = m.low = low, m.columns = m.high = high;
    next.first_cell += m.cells(), next.first_square += m.square();
    next.first_cell_tile += m.cell_tiles(), next.first_square_tile += m.square_tiles();
  }
  matrices.push_back(next);  // its firsts are the totals
  return matrices;
}

template <typename T>
class MuonProductBlockOn : public ::testing::Test {};
using ValueTypes = ::testing::Types<float, Bf16, Half>;
TYPED_TEST_SUITE(MuonProductBlockOn, ValueTypes);

// What two orders of a sum and a rounding may make different.
template <typename T>
void expect_near(const std::vector<T>& actual, const std::vector<T>& expected, const char* what) {
  constexpr float kShare = std::is_same_v<T, float> ? 1e-5f : std::is_same_v<T, Half> ? 1e-3f : 8e-3f;
  int far = 0;
  for (std::size_t k = 0; k < actual.size(); ++k) {
    const float a = widen(actual[k]), b = widen(expected[k]);
    if (!(std::abs(a - b) <= kShare * (std::abs(b) + 0.1f))) ++far;  // true for NaN
  }
  EXPECT_EQ(far, 0) << what << ", of " << actual.size();
}

TYPED_TEST(MuonProductBlockOn, ComputesWhatItsDefinitionComputes) {
  using T = TypeParam;
  std::vector<MuonMatrix> matrices = some_matrices();
  const MuonMatrix totals = matrices.back();
  matrices.pop_back();
  const MuonTable table{matrices.data(), static_cast<std::int32_t>(matrices.size())};
  UpdateStep step{};
  const std::vector<T> y = random_values<T>(totals.first_cell, 1, -0.3f, 0.3f);
  T nan{};
  narrow(std::nanf(""), nan);
  const std::vector<T> no_squares(static_cast<std::size_t>(totals.first_square), nan);
  const std::vector<T> no_cells(static_cast<std::size_t>(totals.first_cell), nan);

  auto squares = no_squares, squares_by_blocks = no_squares;
  run_by_definition(MuonGram<T>{table, y.data(), squares.data(), totals.first_square});
  run_by_blocks(MuonGram<T>{table, y.data(), squares_by_blocks.data(), totals.first_square}, totals.first_square_tile);
  expect_near(squares_by_blocks, squares, "Y'Y");

  auto polynomials = no_squares, polynomials_by_blocks = no_squares;
  run_by_definition(MuonPolynomial<T>{table, &step, squares.data(), polynomials.data(), totals.first_square});
  run_by_blocks(MuonPolynomial<T>{table, &step, squares.data(), polynomials_by_blocks.data(), totals.first_square},
                totals.first_square_tile);
  expect_near(polynomials_by_blocks, polynomials, "the polynomial");

  auto cells = no_cells, cells_by_blocks = no_cells;
  run_by_definition(MuonAdvance<T>{table, polynomials.data(), y.data(), cells.data(), totals.first_cell});
  run_by_blocks(MuonAdvance<T>{table, polynomials.data(), y.data(), cells_by_blocks.data(), totals.first_cell},
                totals.first_cell_tile);
  expect_near(cells_by_blocks, cells, "the next Y");
  if constexpr (std::is_same_v<T, float>) {
    const auto bytes = cells.size() * sizeof(float);
    EXPECT_EQ(std::memcmp(cells.data(), cells_by_blocks.data(), bytes), 0) << "added in the order of the depth";
  }
}

// The lines that eight lanes read at once lie in different banks, whichever they are.
TYPED_TEST(MuonProductBlockOn, ReadsFragmentsFromDifferentBanks) {
  if constexpr (!std::is_same_v<TypeParam, float>) {
    const auto expect_different = [](auto place_of) {
      for (std::int32_t first = 0; first < kLanes; first += 8) {
        std::set<std::int32_t> banks;
        for (std::int32_t lane = first; lane < first + 8; ++lane) banks.insert(place_of(lane) / 16 % 8);
        EXPECT_EQ(banks.size(), 8u);
      }
    };
    for (const bool of_b : {false, true}) {
      for (const std::int32_t x : {0, 16, 48}) {
        for (const std::int32_t k : {0, 16, 48}) {
          expect_different(
              [&](auto lane) { return MuonProductBlock<MuonGram<TypeParam>>::fragment_place(of_b, lane, x, k); });
          expect_different(
              [&](auto lane) { return MuonProductBlock<MuonAdvance<TypeParam>>::fragment_place(of_b, lane, x, k); });
        }
      }
    }
  }
}

}  // namespace
}  // namespace dtrain::backend::cuda
