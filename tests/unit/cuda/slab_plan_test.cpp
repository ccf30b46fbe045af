// Which norms of real networks stay on a chip between their sums and what is made with them, and how much of them.
#include "gpu/native/slab_plan.hpp"

#include <gtest/gtest.h>

#include <dtrain/nn/networks.hpp>

#include "gpu/native/slab_choice.hpp"
#include "training_calls.hpp"

namespace dtrain::backend::cuda {
namespace {

constexpr SlabPlan plan(std::int64_t rows, std::int32_t c, std::int32_t tensors, const ChipFacts& chip) {
  return plan_slabs<Bf16>(cut_rows(rows, c / Pack<Bf16>::size), c, tensors, chip);
}
// Share of the bytes that the definition reads a second time, in percent.
constexpr std::int64_t percent_again(std::int64_t rows, std::int32_t c, std::int32_t tensors, const ChipFacts& chip) {
  const SlabPlan found = plan(rows, c, tensors, chip);
  return found.worth_it() ? 100 * found.read_again / (rows * c * tensors * 2) : 100;
}

// ResNet-50 and -18 at 224x224, 256 images: rows of the stages behind the stem, and all numbers of channels.
constexpr std::int64_t kFirst = 256 * 56 * 56, kSecond = 256 * 28 * 28, kThird = 256 * 14 * 14, kFourth = 256 * 7 * 7;

// Whole slabs of 64 bytes a row lie in the shared memory of an H100 from the second stage on; of the first stage, about
// half forward and a quarter backward.
static_assert(percent_again(kFirst, 64, 1, kH100) < 50 && percent_again(kFirst, 256, 1, kH100) < 50);
static_assert(percent_again(kFirst, 64, 2, kH100) < 75 && percent_again(kFirst, 256, 2, kH100) < 75);
static_assert(percent_again(kSecond, 128, 1, kH100) == 0 && percent_again(kSecond, 512, 1, kH100) == 0);
static_assert(percent_again(kSecond, 128, 2, kH100) == 0 && percent_again(kSecond, 512, 2, kH100) == 0);
static_assert(percent_again(kThird, 256, 1, kH100) == 0 && percent_again(kThird, 1024, 1, kH100) == 0);
static_assert(percent_again(kThird, 256, 2, kH100) == 0 && percent_again(kThird, 1024, 2, kH100) == 0);
static_assert(percent_again(kFourth, 512, 1, kH100) == 0 && percent_again(kFourth, 2048, 1, kH100) < 20);
static_assert(percent_again(kFourth, 512, 2, kH100) < 20 && percent_again(kFourth, 2048, 2, kH100) < 20);

// An A100 has 17 MB instead of 30: where that is a small part, the definition is better.
static_assert(!plan(kFirst, 256, 1, kA100).worth_it() && !plan(kFirst, 256, 2, kA100).worth_it());
static_assert(percent_again(kSecond, 128, 2, kA100) < 50 && percent_again(kThird, 256, 1, kA100) < 55);
static_assert(percent_again(kFourth, 512, 1, kA100) == 0);

TEST(SlabPlan, CountsTheRowsThatAreReadAgain) {
  for (const std::int64_t rows : {1, 31, 32, 1000, 70001}) {
    const RowParts cut = cut_rows(rows, 8);
    for (const std::int64_t kept : {0, 1, 31, 32, 1000}) {
      std::int64_t behind = 0;
      for (std::int64_t row = 0; row < rows; ++row) behind += row / cut.parts >= kept ? 1 : 0;
      EXPECT_EQ(rows_behind(cut, kept), behind) << rows << " rows, " << kept << " kept";
    }
  }
}

TEST(SlabPlan, IsNotForChannelsThatAreNoWholePacks) {
  EXPECT_FALSE(plan(100'000, 100, 1, kH100).worth_it());
  EXPECT_FALSE(plan_slabs<float>(cut_rows(100'000, 26), 102, 1, kH100).worth_it());
}

TEST(SlabPlan, IsNotForAChipOfWhichNothingIsKnown) { EXPECT_FALSE(plan(kThird, 256, 1, {}).worth_it()); }

// Every norm of the networks, in every type, forward and backward.
TEST(SlabPlan, FitsTheChipAndCoversAllOfANorm) {
  const nn::Shape photograph{3, 224, 224}, thumbnail{3, 32, 32};
  const std::pair<nn::NetworkOptions, int> networks[] = {
      {{.name = "resnet-v1", .num_layers = 50, .image = photograph}, 256},
      {{.name = "resnet-v1", .num_layers = 18, .image = photograph}, 256},
      {{.name = "resnet-v1", .num_layers = 20, .image = thumbnail}, 512}};
  for (const auto& [network, n] : networks) {
    for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
      for (const ChipFacts& chip : {kA100, kH100}) {
        int norms = 0, by_slabs = 0;
        for (const Call& call : training_calls(nn::build_network(network), dtype, n)) {
          call.work.visit([&]<typename W>(const W& work) {
            if constexpr (GoesBySlabs<W>) {
              ++norms;
              const SlabPlan found = slabs_of(work, chip);
              if (!found.worth_it()) return;
              ++by_slabs;
              const RowParts& cut = [&]() -> const RowParts& {
                if constexpr (requires { work.statistics; })
                  return work.statistics.sums.cut;
                else
                  return work.totals.sums.cut;
              }();
              EXPECT_LE(found.shared_bytes(), chip.block_bytes) << call.name;
              EXPECT_LE(found.at_once * found.blocks, chip.processors) << call.name;
              EXPECT_LE(found.threads, kSlabThreads) << call.name;
              EXPECT_GE(found.blocks * found.folds, cut.folded_parts) << call.name;
              EXPECT_EQ(found.threads, found.folds * cut.parts_per_fold * found.packs) << call.name;
              EXPECT_GE(found.slabs() * found.at_once, found.tiles) << call.name;
            }
          });
        }
        EXPECT_GT(norms, 30);
        EXPECT_GT(by_slabs, norms / 4) << network.name << network.num_layers << ' ' << dtype_name(dtype);
      }
    }
  }
}

}  // namespace
}  // namespace dtrain::backend::cuda
