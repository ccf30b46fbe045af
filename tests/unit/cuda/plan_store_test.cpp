#include "plans/plan_store.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include <dtrain/base/error.hpp>

#include "common/temporary_folder.hpp"

namespace dtrain::backend::cuda {
namespace {

constexpr const char* kMaker = "NVIDIA H100 80GB HBM3 cuDNN 9.19.0";

Path only_file(const Path& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) return entry.path();
  return {};
}

TEST(CudaPlanStore, KeepsWhatWasMeasuredForLaterRuns) {
  const TemporaryFolder folder;
  PlanStore(folder.path() / "new", kMaker).keep("work", "67:2=1");
  const PlanStore later(folder.path() / "new", kMaker);
  EXPECT_EQ(later.find("work"), "67:2=1");
  EXPECT_EQ(later.find("other work"), "");
}

TEST(CudaPlanStore, KeepsWhatOthersKeptMeanwhile) {
  const TemporaryFolder folder;
  PlanStore one(folder.path(), kMaker), other(folder.path(), kMaker);
  one.keep("a", "1");
  other.keep("b", "2");
  one.keep("c", "3");
  const PlanStore later(folder.path(), kMaker);
  EXPECT_EQ(later.find("a") + later.find("b") + later.find("c"), "123");
}

TEST(CudaPlanStore, KnowsNothingOfOtherGpusOrVersions) {
  const TemporaryFolder folder;
  PlanStore(folder.path(), kMaker).keep("work", "67");
  EXPECT_EQ(PlanStore(folder.path(), "NVIDIA H200 cuDNN 9.19.0").find("work"), "");
  EXPECT_EQ(PlanStore(folder.path(), "NVIDIA H100 80GB HBM3 cuDNN 9.20.0").find("work"), "");
}

// Damage to every byte, which a disk or an editor may do; what is not damaged by it is still the same.
TEST(CudaPlanStore, TakesDamageForNothing) {
  const TemporaryFolder folder;
  PlanStore(folder.path(), kMaker).keep("work", "67:2=1");
  const std::string whole = read_file(only_file(folder.path()));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] + 1);
    write_file_atomic(only_file(folder.path()), damaged);
    const std::string found = PlanStore(folder.path(), kMaker).find("work");
    EXPECT_TRUE(found.empty() || found == "67:2=1") << damaged;
  }
  write_file_atomic(only_file(folder.path()), whole.substr(0, whole.size() / 2));
  PlanStore store(folder.path(), kMaker);
  EXPECT_EQ(store.find("work"), "");
  store.keep("work", "3");
  EXPECT_EQ(PlanStore(folder.path(), kMaker).find("work"), "3");
}

TEST(CudaPlanStore, IsDescribedByWhatItHolds) {
  const TemporaryFolder here, there;
  PlanStore one(here.path(), kMaker), other(there.path(), kMaker);
  EXPECT_EQ(one.description(), "");
  one.keep("a", "1");
  EXPECT_EQ(one.description().substr(0, 16), "1 measured plan ");
  one.keep("b", "2");
  other.keep("b", "2");
  EXPECT_NE(one.description(), other.description());
  other.keep("a", "1");
  EXPECT_EQ(one.description(), other.description());
  other.keep("a", "3");
  EXPECT_NE(one.description(), other.description());
}

TEST(CudaPlanStore, KeepsWhichEnginesGiveTheSameBitsForWhichWork) {
  const TemporaryFolder folder;
  PlanStore store(folder.path(), kMaker);
  store.keep("work", "62");
  store.keep_proof("work", "3", false);
  store.keep_proof("work", "7:2=1", true);
  const PlanStore later(folder.path(), kMaker);
  EXPECT_EQ(later.proof("work", "3"), std::optional(false));
  EXPECT_EQ(later.proof("work", "7:2=1"), std::optional(true));
  EXPECT_EQ(later.proof("work", "7:2=2"), std::nullopt);
  EXPECT_EQ(later.proof("other work", "3"), std::nullopt);
  EXPECT_EQ(later.find("work"), "62");
}

// Members of a job need the same plans; which engines each of them has tried says nothing about that.
TEST(CudaPlanStore, IsNotDescribedByItsProofs) {
  PlanStore store;
  store.keep_proof("work", "3", true);
  EXPECT_EQ(store.description(), "");
}

// Engines were named without their settings there.
TEST(CudaPlanStore, KnowsNothingOfFilesOfEarlierVersions) {
  const TemporaryFolder folder;
  PlanStore(folder.path(), kMaker).keep("work", "67");
  const Path file = only_file(folder.path());
  std::string text = read_file(file);
  text.replace(text.find("dtrain.plans/2"), 14, "dtrain.plans/1");
  write_file_atomic(file, text);
  EXPECT_EQ(PlanStore(folder.path(), kMaker).find("work"), "");
}

TEST(CudaPlanStore, KeepsNothingWithoutAFolder) {
  PlanStore store;
  store.keep("work", "67");
  EXPECT_EQ(store.find("work"), "67");
}

TEST(CudaPlanStore, SaysWhereItCannotBeKept) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "plans") << "a file, not a folder";
  EXPECT_THROW(PlanStore(folder.path() / "plans", kMaker).keep("work", "67"), Error);
}

TEST(CudaPlanStore, TellsWorkApartByAllThatDecidesOnItsPlan) {
  Convolution work;
  work.shape = {8, 4, 10, 12, 16, 10, 12, 3, 5, 1, 1, 1, 2, 1};
  const std::string key = work_key(work, {});
  EXPECT_EQ(key, "forward float32 8x10x12x4 3x5x16 stride 1x1 padding 1x2 groups 1");
  EXPECT_NE(work_key(work, {.tf32 = true}), key);
  const auto with = [&](auto member, auto value) {
    Convolution other = work;
    other.*member = value;
    return work_key(other, {});
  };
  EXPECT_NE(with(&Convolution::direction, Direction::backward_data), key);
  EXPECT_NE(with(&Convolution::dtype, DType::bfloat16), key);
  using S = ConvolutionShape;  // the output's size follows from the rest
  for (const auto member : {&S::n, &S::in, &S::in_h, &S::in_w, &S::out, &S::kernel_h, &S::kernel_w, &S::stride_h,
                            &S::stride_w, &S::pad_h, &S::pad_w, &S::groups, &S::dilation_h, &S::dilation_w}) {
    S shape = work.shape;
    shape.*member += 1;
    EXPECT_NE(with(&Convolution::shape, shape), key);
  }
}

TEST(CudaPlanStore, TellsPlansApartThatMayGiveOtherBits) {
  Convolution work;
  const std::string key = work_key(work, {});
  EXPECT_EQ(work_key(work, {.deterministic = false}), key) << "each rank computes it for itself";
  work.any_order = true;
  EXPECT_EQ(work_key(work, {}), key) << "nobody asked for other bits";
  EXPECT_EQ(work_key(work, {.deterministic = false}), key + " in any order");
}

}  // namespace
}  // namespace dtrain::backend::cuda
