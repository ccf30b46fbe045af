#include "transport_choice.hpp"

#include <algorithm>

#include <dtrain/base/error.hpp>

namespace dtrain::config {
namespace {

const backend::CudaLibrary* nccl_in(const backend::CudaReport& report) {
  const auto found = std::ranges::find(report.libraries, "NCCL", &backend::CudaLibrary::name);
  return found == report.libraries.end() ? nullptr : &*found;
}

bool adds_on_gpus(KvStore store) { return store == KvStore::device || store == KvStore::dist_device_sync; }

}  // namespace

comm::Transport choose_transport(const JobOptions& job, const TransportRequest& request,
                                 const backend::CudaReport& report) {
  if (job.transport == comm::Transport::nccl && !request.on_gpus) {
    throw UsageError("--transport nccl needs GPUs, and the workers compute on the CPU",
                     "name GPUs in --gpus, or leave out --transport");
  }
  const backend::CudaLibrary* const nccl = nccl_in(report);
  const bool wants_gpus = request.chose_store && adds_on_gpus(job.kv_store) && request.on_gpus;
  if (request.chose_transport || !wants_gpus || !nccl || !nccl->problem.empty()) return job.transport;
  return comm::Transport::nccl;
}

const backend::CudaLibrary& found_nccl(const backend::CudaReport& report) {
  const backend::CudaLibrary* const nccl = nccl_in(report);
  if (!nccl) throw UsageError("NCCL: " + report.problem, report.hint);
  if (!nccl->problem.empty()) throw UsageError(nccl->problem, nccl->hint + "; --transport tcp works without NCCL");
  return *nccl;
}

}  // namespace dtrain::config
