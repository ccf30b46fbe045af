#include "plans/plan_store.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>

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

// What was read when this process began may have been settled by another one since.
TEST(CudaPlanStore, WritesNothingBackThatItOnlyRead) {
  const TemporaryFolder folder;
  PlanStore one(folder.path(), kMaker);
  one.keep("work", "1");
  one.keep_proof("work", "3", false);
  PlanStore other(folder.path(), kMaker);
  one.keep("work", "2");
  one.keep_proof("work", "3", true);
  other.keep("other work", "62");
  EXPECT_EQ(other.find("work"), "1") << "the same in every step of a process";
  const PlanStore later(folder.path(), kMaker);
  EXPECT_EQ(later.find("work"), "2");
  EXPECT_EQ(later.find("other work"), "62");
  EXPECT_EQ(later.proof("work", "3"), std::optional(true));
}

TEST(CudaPlanStore, KnowsNothingOfAProofThatAProcessIsStillTrying) {
  const TemporaryFolder folder;
  PlanStore one(folder.path(), kMaker);
  one.begin_proof("work", "3");
  PlanStore other(folder.path(), kMaker);
  EXPECT_EQ(other.proof("work", "3"), std::nullopt);
  one.keep_proof("work", "3", true);
  other.keep_proof("other work", "3", true);
  const PlanStore later(folder.path(), kMaker);
  EXPECT_EQ(later.proof("work", "3"), std::optional(true));
  EXPECT_EQ(later.proof("other work", "3"), std::optional(true));
  EXPECT_EQ(read_file(only_file(folder.path())).find("identity"), std::string::npos) << "none is under way";
}

void begin_proof_and_end(const Path& folder) {
  const pid_t child = ::fork();
  if (child == 0) {
    PlanStore(folder, kMaker).begin_proof("work", "3");
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
}

TEST(CudaPlanStore, TakesAProofThatEndedItsProcessForAFailedOne) {
  const TemporaryFolder folder;
  begin_proof_and_end(folder.path());
  EXPECT_EQ(PlanStore(folder.path(), kMaker).proof("work", "3"), std::optional(false));
  EXPECT_EQ(PlanStore(folder.path(), kMaker).proof("work", "7"), std::nullopt);
}

// As if it had been written so long ago on another machine that shares the folder, or in another container.
void begin_proof_elsewhere(const Path& folder, std::chrono::seconds ago) {
  begin_proof_and_end(folder);
  const Path file = only_file(folder);
  Json document = Json::parse(read_file(file), "plans");
  Json& content = document["content"];
  Json& mark = content["under_way"]["work by 3"];
  mark["identity"] = "another-boot pid:[4026531836] 17";
  mark["began"] = mark.at("began").as_integer() - std::int64_t{ago.count()};
  document["sha256"] = sha256_hex(bytes_of(content.dump()));
  write_file_atomic(file, document.dump(1));
}

TEST(CudaPlanStore, LearnsNothingAtFirstFromAProofThatBeganOnAnotherMachine) {
  const TemporaryFolder folder;
  begin_proof_elsewhere(folder.path(), std::chrono::minutes(14));
  EXPECT_EQ(PlanStore(folder.path(), kMaker).proof("work", "3"), std::nullopt);
}

// Each run may be in a new container, and what ended there would end this one, too.
TEST(CudaPlanStore, TakesAProofThatBeganLongAgoOnAnotherMachineForAFailedOne) {
  const TemporaryFolder folder;
  for (const std::chrono::minutes ago : {std::chrono::minutes(16), std::chrono::minutes(-16)}) {
    begin_proof_elsewhere(folder.path(), ago);
    EXPECT_EQ(PlanStore(folder.path(), kMaker).proof("work", "3"), std::optional(false)) << ago.count();
  }
  PlanStore(folder.path(), kMaker).keep_proof("work", "3", true);
  EXPECT_EQ(PlanStore(folder.path(), kMaker).proof("work", "3"), std::optional(true)) << "it had only taken long";
}

TEST(CudaPlanStore, ForgetsAProofThatCouldNotBeTried) {
  const TemporaryFolder folder;
  PlanStore one(folder.path(), kMaker);
  one.begin_proof("work", "3");
  one.begin_proof("work", "7");
  one.drop_proof("work", "3");
  const std::string kept = read_file(only_file(folder.path()));
  EXPECT_EQ(kept.find("work by 3"), std::string::npos);
  EXPECT_NE(kept.find("work by 7"), std::string::npos);
}

TEST(CudaPlanStore, ReadsFilesThatKnowNoProofsUnderWay) {
  const TemporaryFolder folder;
  PlanStore(folder.path(), kMaker).keep("work", "67");
  const Path file = only_file(folder.path());
  Json document = Json::parse(read_file(file), "plans");
  const Json content = Json::object(
      {{"engines", document.at("content").at("engines")}, {"proofs", document.at("content").at("proofs")}});
  document["content"] = content;
  document["sha256"] = sha256_hex(bytes_of(content.dump()));
  write_file_atomic(file, document.dump(1));
  EXPECT_EQ(PlanStore(folder.path(), kMaker).find("work"), "67");
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
