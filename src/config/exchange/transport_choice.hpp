// What carries the gradients between a job's workers. Pure.
#pragma once

#include <dtrain/backend/cuda.hpp>

#include "config/job_options.hpp"

namespace dtrain::config {

struct TransportRequest {
  bool chose_transport = false, chose_store = false;  // by the user
  bool on_gpus = false;                               // where the workers compute
};

// The transport that the options name. Where the user chose none, chose a kv_store that adds gradients on GPUs (device,
// dist_device_sync), workers compute on GPUs and this machine has NCCL, it is NCCL. Throws UsageError for NCCL between
// workers on the CPU.
comm::Transport choose_transport(const JobOptions& job, const TransportRequest& request,
                                 const backend::CudaReport& report);

// NCCL as it was found. Throws UsageError with the reason where it was not.
const backend::CudaLibrary& found_nccl(const backend::CudaReport& report);

}  // namespace dtrain::config
