// What carries the gradients between a job's workers. Pure.
#pragma once

#include <string>

#include <dtrain/backend/cuda.hpp>

#include "job_options.hpp"

namespace dtrain::config {

struct TransportWish {
  bool chose_transport = false, chose_store = false;  // the person did
  bool on_gpus = false;                               // where the workers compute
};

// --transport as it stands, unless nobody chose it and --kv-store was chosen to add gradients on GPUs (device,
// dist_device_sync) where workers compute on GPUs and this machine has NCCL: then "nccl". Throws UsageError for NCCL
// between workers on the CPU.
std::string choose_transport(const JobOptions& job, const TransportWish& wish, const backend::CudaReport& report);

// NCCL as it was found. Throws UsageError with the reason where it was not.
const backend::CudaLibrary& found_nccl(const backend::CudaReport& report);

}  // namespace dtrain::config
