#include "transport_choice.hpp"

#include <algorithm>

#include <dtrain/base/error.hpp>

namespace dtrain::config {
namespace {

const backend::CudaLibrary* nccl_in(const backend::CudaReport& report) {
  const auto found = std::ranges::find(report.libraries, "NCCL", &backend::CudaLibrary::name);
  return found == report.libraries.end() ? nullptr : &*found;
}

bool adds_on_gpus(const std::string& store) { return store == "device" || store == "dist_device_sync"; }

}  // namespace

std::string choose_transport(const JobOptions& job, const TransportWish& wish, const backend::CudaReport& report) {
  if (job.transport == "nccl" && !wish.on_gpus) {
    throw UsageError("--transport nccl: the workers compute on the CPU, and NCCL works between GPUs",
                     "name GPUs in --gpus, or leave it out");
  }
  const backend::CudaLibrary* const nccl = nccl_in(report);
  const bool wants_gpus = wish.chose_store && adds_on_gpus(job.kv_store) && wish.on_gpus;
  if (wish.chose_transport || !wants_gpus || !nccl || !nccl->problem.empty()) return job.transport;
  return "nccl";
}

const backend::CudaLibrary& found_nccl(const backend::CudaReport& report) {
  const backend::CudaLibrary* const nccl = nccl_in(report);
  if (!nccl) throw UsageError("NCCL: " + report.problem, report.hint);
  if (!nccl->problem.empty()) throw UsageError(nccl->problem, nccl->hint + "; --transport tcp does without");
  return *nccl;
}

}  // namespace dtrain::config
