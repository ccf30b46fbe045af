#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

#include "config/exchange/transport_choice.hpp"

namespace dtrain::config {
namespace {

const backend::CudaReport kWithNccl{.libraries = {{.name = "cuDNN"}, {.name = "NCCL", .file = "/lib/libnccl.so.2"}}};
const backend::CudaReport kWithout{.libraries = {{.name = "NCCL", .problem = "NCCL is missing", .hint = "install it"}}};

using comm::Transport;

JobOptions job_with(KvStore store, Transport transport = Transport::tcp) {
  JobOptions job;
  job.kv_store = store;
  job.transport = transport;
  return job;
}

TEST(TransportChoice, AStoreOnGpusThatWasChosenMeansNccl) {
  const TransportRequest request{.chose_store = true, .on_gpus = true};
  EXPECT_EQ(choose_transport(job_with(KvStore::device), request, kWithNccl), Transport::nccl);
  EXPECT_EQ(choose_transport(job_with(KvStore::dist_device_sync), request, kWithNccl), Transport::nccl);
  EXPECT_EQ(choose_transport(job_with(KvStore::dist_sync), request, kWithNccl), Transport::tcp);
}

TEST(TransportChoice, StaysAsItIsWithoutARequestGpusOrNccl) {
  EXPECT_EQ(choose_transport(job_with(KvStore::device), {.on_gpus = true}, kWithNccl), Transport::tcp);
  EXPECT_EQ(choose_transport(job_with(KvStore::device), {.chose_store = true}, kWithNccl), Transport::tcp);
  EXPECT_EQ(choose_transport(job_with(KvStore::device), {.chose_store = true, .on_gpus = true}, kWithout),
            Transport::tcp);
  EXPECT_EQ(choose_transport(job_with(KvStore::device), {true, true, true}, kWithNccl), Transport::tcp);
}

TEST(TransportChoice, NcclIsBetweenGpus) {
  EXPECT_EQ(choose_transport(job_with(KvStore::device, Transport::nccl), {.chose_transport = true, .on_gpus = true},
                             kWithout),
            Transport::nccl);
  EXPECT_THROW(choose_transport(job_with(KvStore::device, Transport::nccl), {.chose_transport = true}, kWithNccl),
               UsageError);
}

TEST(TransportChoice, SaysWhyThereIsNoNccl) {
  EXPECT_EQ(found_nccl(kWithNccl).file, "/lib/libnccl.so.2");
  EXPECT_THROW(found_nccl(kWithout), UsageError);
  EXPECT_THROW(found_nccl({.problem = "built without CUDA"}), UsageError);
}

}  // namespace
}  // namespace dtrain::config
