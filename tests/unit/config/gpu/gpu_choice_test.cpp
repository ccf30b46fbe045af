#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

#include "gpu/gpu_choice.hpp"

namespace dtrain::config {
namespace {

using Gpus = std::vector<int>;

template <typename Work>
std::string refusal_of_gpus(Work work) {
  try {
    work();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(GpuChoice, ReadsAList) {
  EXPECT_EQ(named_gpus({.gpus = ""}), Gpus{});
  EXPECT_EQ(named_gpus({.gpus = "3"}), Gpus{3});
  EXPECT_EQ(named_gpus({.gpus = "2,0,10"}), (Gpus{2, 0, 10}));
}

TEST(GpuChoice, RefusesListsThatMakeNoSense) {
  for (const char* list : {",", "0,", ",0", "0,,1", "0 1", "0,-1", "x", "0,99999999999"}) {
    EXPECT_NE(refusal_of_gpus([&] { named_gpus({.gpus = list}); }).find("is not the number of a GPU"),
              std::string::npos)
        << list;
  }
  EXPECT_EQ(refusal_of_gpus([] { named_gpus({.gpus = "0,1,0"}); }), "--gpus 0,1,0: GPU 0 is named twice");
  EXPECT_NE(refusal_of_gpus([] { named_gpus({.device = Device::cpu, .gpus = "0"}); }), "");
}

TEST(GpuChoice, ANumberOfGpusMeansTheFirstOnes) {
  EXPECT_EQ(named_gpus({.gpus = first_gpus(3)}), (Gpus{0, 1, 2}));
  EXPECT_EQ(named_gpus({.gpus = first_gpus(0)}), Gpus{});
}

TEST(GpuChoice, GivesEachSlotItsGpu) {
  const ComputeOptions two{.gpus = "3,1"};
  EXPECT_EQ(gpu_of_slot(two, 0), 3);
  EXPECT_EQ(gpu_of_slot(two, 1), 1);
  EXPECT_EQ(refusal_of_gpus([&] { gpu_of_slot(two, 2); }), "worker 2 of this host has no GPU: --gpus 3,1 names 2");
  EXPECT_EQ(gpu_of_slot({}, 1), std::nullopt);
  EXPECT_EQ(gpu_of_slot({.device = Device::cuda}, 1), 1);
}

TEST(GpuChoice, AHostHasAWorkerForEachGpu) {
  EXPECT_EQ(workers_of_host({}), 1);
  EXPECT_EQ(workers_of_host({.device = Device::cuda}), 1);
  EXPECT_EQ(workers_of_host({.gpus = "4,5,6"}), 3);
}

TEST(GpuChoice, GpusShareTheBatchOfTheirHost) {
  EXPECT_EQ(batch_of_worker({.batch_size = 96}), 96);
  EXPECT_EQ(batch_of_worker({.gpus = "0,1", .batch_size = 96}), 48);
  EXPECT_EQ(refusal_of_gpus([] { batch_of_worker({.gpus = "0,1", .batch_size = 97}); }),
            "--batch-size 97: 2 GPUs cannot share it evenly");
}

TEST(GpuChoice, NamesAGpuThatTheMachineLacks) {
  const backend::CudaReport two{.gpus = {{.index = 0}, {.index = 1}}};
  EXPECT_EQ(refusal_of_gpus([&] { check_gpus_of_machine({1, 0}, two); }), "");
  EXPECT_EQ(refusal_of_gpus([&] {
              check_gpus_of_machine({0, 2}, two);
            }),
            "--gpus: GPU 2 does not exist: this machine has GPUs 0 to 1");
  EXPECT_EQ(refusal_of_gpus([] {
              check_gpus_of_machine({0, 1}, {.gpus = {{}}});
            }),
            "--gpus: GPU 1 does not exist: this machine has GPU 0 only");
  EXPECT_EQ(refusal_of_gpus([] { check_gpus_of_machine({0}, {.problem = "no driver"}); }), "no driver");
  EXPECT_EQ(refusal_of_gpus([] { check_gpus_of_machine({}, {.problem = "no driver"}); }), "");
}

TEST(GpuChoice, RefusesHostsWithMoreWorkersThanGpus) {
  const elastic::HostList hosts{.hosts = {{.name = "w1", .slots = 1}, {.name = "w2", .slots = 3}}};
  EXPECT_EQ(refusal_of_gpus([&] { check_slots({.gpus = "0,1,2"}, hosts); }), "");
  EXPECT_EQ(refusal_of_gpus([&] { check_slots({.gpus = "0,1"}, hosts); }),
            "w2 slots=3: --gpus 0,1 names 2 GPUs, and each worker needs one");
  EXPECT_EQ(refusal_of_gpus([&] { check_slots({.device = Device::cuda}, hosts); }), "");
}

}  // namespace
}  // namespace dtrain::config
