#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

#include "transport_choice.hpp"

namespace dtrain::config {
namespace {

const backend::CudaReport kWithNccl{.libraries = {{.name = "cuDNN"}, {.name = "NCCL", .file = "/lib/libnccl.so.2"}}};
const backend::CudaReport kWithout{.libraries = {{.name = "NCCL", .problem = "NCCL is missing", .hint = "install it"}}};

JobOptions job_with(const std::string& store, const std::string& transport = "tcp") {
  JobOptions job;
  job.kv_store = store;
  job.transport = transport;
  return job;
}

TEST(TransportChoice, AStoreOnGpusThatWasChosenMeansNccl) {
  const TransportWish wish{.chose_store = true, .on_gpus = true};
  EXPECT_EQ(choose_transport(job_with("device"), wish, kWithNccl), "nccl");
  EXPECT_EQ(choose_transport(job_with("dist_device_sync"), wish, kWithNccl), "nccl");
  EXPECT_EQ(choose_transport(job_with("dist_sync"), wish, kWithNccl), "tcp");
}

TEST(TransportChoice, StaysAsItIsWithoutAWishGpusOrNccl) {
  EXPECT_EQ(choose_transport(job_with("device"), {.on_gpus = true}, kWithNccl), "tcp");
  EXPECT_EQ(choose_transport(job_with("device"), {.chose_store = true}, kWithNccl), "tcp");
  EXPECT_EQ(choose_transport(job_with("device"), {.chose_store = true, .on_gpus = true}, kWithout), "tcp");
  EXPECT_EQ(choose_transport(job_with("device"), {true, true, true}, kWithNccl), "tcp");
}

TEST(TransportChoice, NcclIsBetweenGpus) {
  EXPECT_EQ(choose_transport(job_with("device", "nccl"), {.chose_transport = true, .on_gpus = true}, kWithout), "nccl");
  EXPECT_THROW(choose_transport(job_with("device", "nccl"), {.chose_transport = true}, kWithNccl), UsageError);
}

TEST(TransportChoice, SaysWhyThereIsNoNccl) {
  EXPECT_EQ(found_nccl(kWithNccl).file, "/lib/libnccl.so.2");
  EXPECT_THROW(found_nccl(kWithout), UsageError);
  EXPECT_THROW(found_nccl({.problem = "built without CUDA"}), UsageError);
}

}  // namespace
}  // namespace dtrain::config
