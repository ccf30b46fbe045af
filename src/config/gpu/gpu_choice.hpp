// Which GPU each worker of a host computes on: one worker for each, slot k of a host has the k-th of --gpus.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <dtrain/backend/cuda.hpp>
#include <dtrain/elastic/host_file.hpp>

#include "config/compute_options.hpp"

namespace dtrain::config {

// The GPUs that --gpus names, in its order; empty: it names none. Throws UsageError for a list that makes no sense.
std::vector<int> named_gpus(const ComputeOptions& options);

// The list of the first ones, "0,1,2": what --gpus is where only their number is known.
std::string first_gpus(int count);

// The GPU of worker `slot` of a host; nullopt: it computes on the CPU. --device cuda alone means GPU k for slot k.
// Throws UsageError for a slot that --gpus leaves without one.
std::optional<int> gpu_of_slot(const ComputeOptions& options, int slot);

// How many workers a host has whose line does not say.
int workers_of_host(const ComputeOptions& options);

// What a worker that has a batch of its own takes of its host's: --batch-size is shared by the GPUs of --gpus. Throws
// UsageError where that leaves a rest.
int batch_of_worker(const ComputeOptions& options);

// Throw UsageError for GPUs that the machine of the report does not have, and for hosts with more workers than GPUs.
void check_gpus_of_machine(const std::vector<int>& gpus, const backend::CudaReport& report);
void check_slots(const ComputeOptions& options, const elastic::HostList& hosts);

}  // namespace dtrain::config
