// The native kernel of FoldedSums, replayed block by block and step by step: the bits of its definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "call.hpp"
#include "gpu/native/sum_block.hpp"
#include "random_values.hpp"

namespace dtrain::backend::cuda {
namespace {

// Memory of one operation; what nothing wrote is NaN.
struct Floats {
  explicit Floats(std::int64_t size) : values(static_cast<std::size_t>(size), std::nanf("")) {}
  float* data() { return values.data(); }
  std::vector<float> values;
};

template <typename Kernel>
void run_folded(const Kernel& kernel) {
  for (std::int64_t i = kernel.threads() - 1; i >= 0; --i) kernel(i);
}

template <typename Sums, typename Finish>
void run_by_definition(const FoldedSums<Sums, Finish>& work) {
  for (const Call& call : definition_of({"", work})) {
    call.work.visit([]<typename W>(const W& kernel) {
      if constexpr (IsKernel<W>) run_folded(kernel);
    });
  }
}

// Blocks from the last to the first: the one that comes last folds, whichever it is.
template <typename Sums, typename Finish>
void run_by_blocks(const FoldedSums<Sums, Finish>& work) {
  using Block = SumBlock<Sums, Finish>;
  const SumTile tile = sum_tile(packs_of(work.sums.channels(), Block::size));
  const auto all_threads = [](auto step) {
    for (std::int32_t thread = SumTile::kThreads - 1; thread >= 0; --thread) step(thread);
  };
  constexpr std::int32_t kBytes = Block::bytes(SumTile::kThreads, SumTile::kWidest, kMostFolds);
  alignas(16) static unsigned char memory[kBytes];
  auto* const parts = reinterpret_cast<float*>(memory);
  auto* const groups = reinterpret_cast<double*>(memory);
  for (std::int32_t column = 0; column < tile.tiles; ++column) {
    const auto blocks = static_cast<std::int32_t>(packs_of(work.sums.cut.folded_parts, SumTile::kFolds));
    for (std::int32_t of_tile = blocks - 1; of_tile >= 0; --of_tile) {
      const Block block(work, {tile.packs, column, of_tile * SumTile::kFolds, SumTile::kFolds, SumTile::kThreads});
      std::fill_n(memory, kBytes, static_cast<unsigned char>(0xff));
      all_threads([&](std::int32_t thread) { block.sum_parts(thread, parts); });
      all_threads([&](std::int32_t thread) { block.fold_parts(thread, parts); });
    }
    const Block last(work, {tile.packs, column, 0, SumTile::kFolds, SumTile::kThreads});
    std::fill_n(memory, kBytes, static_cast<unsigned char>(0xff));
    all_threads([&](std::int32_t thread) { last.sum_groups_of_folds(thread, groups); });
    all_threads([&](std::int32_t thread) { last.finish(thread, groups); });
  }
}

struct Size {
  std::int64_t rows;
  std::int32_t c;
};
// Rows that are few, odd and many; channels in one tile and several, whole and cut, more than a block is wide.
const Size kSizes[] = {{1, 4},     {31, 3},     {33, 10},    {3000, 16},  {4000, 24}, {70000, 8},
                       {9000, 64}, {2000, 100}, {5000, 256}, {700, 2048}, {40, 5000}, {300000, 1}};

template <typename T>
class FoldedSumsOn : public ::testing::Test {};
using ValueTypes = ::testing::Types<float, Bf16, Half>;
TYPED_TEST_SUITE(FoldedSumsOn, ValueTypes);

// run(make(memory)) both ways, with memory of its own for each; the first `results` floats are what comes out.
template <typename Make>
void expect_same_bits(const RowParts& cut, std::int64_t width, std::int64_t results, Make make) {
  Floats by_definition(results), by_blocks(results), parts(cut.parts * width), folds(cut.folded_parts * width);
  Floats other_folds(cut.folded_parts * width);
  run_by_definition(
      make(by_definition.data(), FoldParts{parts.data(), folds.data(), cut, static_cast<std::int32_t>(width)}));
  run_by_blocks(make(by_blocks.data(), FoldParts{nullptr, other_folds.data(), cut, static_cast<std::int32_t>(width)}));
  const auto bits = [](const Floats& floats) {
    std::vector<std::uint32_t> words(floats.values.size());
    std::memcpy(words.data(), floats.values.data(), words.size() * sizeof(float));
    return words;
  };
  EXPECT_EQ(bits(by_definition), bits(by_blocks));
  EXPECT_EQ(bits(folds), bits(other_folds));
}

TYPED_TEST(FoldedSumsOn, GivesTheBitsOfItsDefinition) {
  using T = TypeParam;
  for (const auto& [rows, c] : kSizes) {
    SCOPED_TRACE(::testing::Message() << rows << " x " << c);
    const RowParts cut = cut_rows(rows, packs_of(c, Pack<T>::size));
    ASSERT_LE(cut.folded_parts, kMostFolds);
    const std::vector<T> x = random_values<T>(rows * c, 1, -1, 3), dy = random_values<T>(rows * c, 2, -1, 3);
    const std::vector<float> gamma = random_values<float>(c, 3, -1, 3), beta = random_values<float>(c, 4, -1, 3);
    const std::vector<float> start = random_values<float>(NormCoefficients::rows * std::int64_t{c}, 5, -1, 3);

    expect_same_bits(cut, c, c, [&](float* to, const FoldParts& fold) {
      return ColumnTotals<T>{
          {dy.data(), const_cast<float*>(fold.in), cut, c}, fold, {fold.out, to, cut.folded_parts, c}, nullptr};
    });
    // Coefficients, then mean and variance.
    expect_same_bits(cut, 2 * c, (NormCoefficients::rows + 2) * std::int64_t{c}, [&](float* to, const FoldParts& fold) {
      const NormCoefficients coefficients{to, c};
      float* const mean = to + NormCoefficients::rows * std::int64_t{c};
      return NormStatistics<T>{
          {x.data(), const_cast<float*>(fold.in), cut, c},
          fold,
          {fold.out, x.data(), cut, {gamma.data(), beta.data(), 1e-5f}, coefficients, mean, mean + c, 3.0f},
          nullptr};
    });
    // Coefficients, then dgamma and dbeta.
    expect_same_bits(cut, 2 * c, (NormCoefficients::rows + 2) * std::int64_t{c}, [&](float* to, const FoldParts& fold) {
      std::ranges::copy(start, to);
      const NormCoefficients coefficients{to, c};
      float* const dgamma = to + NormCoefficients::rows * std::int64_t{c};
      const NormIncoming<T> incoming{dy.data(), nullptr, nullptr, true};
      return NormGradientTotals<T>{{incoming, x.data(), nullptr, const_cast<float*>(fold.in), cut, coefficients},
                                   fold,
                                   {fold.out, cut, rows, coefficients, dgamma, dgamma + c},
                                   nullptr};
    });
  }
}

TYPED_TEST(FoldedSumsOn, GivesTheBitsOfTheDefinitionOfAWhitening) {
  using T = TypeParam;
  constexpr std::int32_t kOut = 24, kSide = 31, kSamples = 9;
  const std::int64_t rows = std::int64_t{kSamples} * kSide * kSide;
  const std::vector<T> images = random_values<T>(kSamples * 3 * (kSide + 1) * (kSide + 1), 1, -1, 1);
  const std::vector<float> weights = random_values<float>(kOut * Whitening<T>::size, 2, -1, 1);
  const std::vector<T> dy = random_values<T>(rows * kOut, 3, -1, 3);
  const Whitening<T> whitening{images.data(), kSide + 1, kSide + 1, weights.data(), nullptr, kOut};
  const RowParts cut = cut_rows(rows, packs_of(kOut, Pack<T>::size));
  ASSERT_GT(cut.folded_parts, 1);
  expect_same_bits(cut, kOut, kOut, [&](float* to, const FoldParts& fold) {
    return WhiteningTotals<T>{{whitening, dy.data(), const_cast<float*>(fold.in), cut},
                              fold,
                              {fold.out, to, cut.folded_parts, kOut},
                              nullptr};
  });
}

}  // namespace
}  // namespace dtrain::backend::cuda
