// Options of where and how steps are computed.
#pragma once

#include <memory>
#include <string>

#include <dtrain/backend/backend.hpp>
#include <dtrain/backend/cuda.hpp>
#include <dtrain/base/enum_names.hpp>

#include "option_set.hpp"

namespace dtrain::config {

// What computes the steps. automatic: the GPUs that `gpus` names, else the CPU.
enum class Device { automatic, cpu, cuda };
constexpr EnumName<backend::OwnProducts> kOwnProductsNames[] = {{backend::OwnProducts::never, "never"},
                                                                {backend::OwnProducts::timed, "timed"},
                                                                {backend::OwnProducts::first, "first"}};
constexpr EnumName<Device> kDeviceNames[] = {{Device::automatic, "auto"}, {Device::cpu, "cpu"}, {Device::cuda, "cuda"}};

struct ComputeOptions {
  Device device = Device::automatic;
  std::string gpus{};
  int threads = 0;  // set_machine_defaults()
  std::string dtype = "float32";
  backend::CudaOptions cuda{};
  int hosts = 1;         // at the start of the job
  int batch_size = 128;  // of each host
  int global_batch = 0;  // 0: batch_size x hosts
  int accumulate = 1;    // parts of batch_size samples that make a step of a host
  int logical_shards = 1;
  std::uint64_t seed = 0;

  int samples_per_step() const;  // throws UsageError for more than an int holds
};

// Fills what depends on this machine: threads, as many as this process may use.
void set_machine_defaults(ComputeOptions& options);
// Device, GPUs, threads, dtype. most_gpus: how many of them the command computes on.
constexpr int kMostGpus = 1024;
void bind_device(OptionSet& set, ComputeOptions& options, int most_gpus);
void bind_batch(OptionSet& set, ComputeOptions& options);  // batch sizes, shards, seed
// Drops a --global-batch that comes from a weaker source than --batch-size: a file or a recipe beside the command line.
void let_stronger_batch_decide(const OptionSet& set, ComputeOptions& options);
// Where --device and --gpus contradict each other, the one from the stronger source decides; an empty --gpus means the
// CPU. bind_device() arranges that this is called.
void let_stronger_device_decide(OptionSet& set, ComputeOptions& options);

// Samples of a detector that are evaluated together, where the user chose no number: they are large.
constexpr int kDetectorBatch = 8;
void suit_evaluation_of_detector(const OptionSet& set, ComputeOptions& options);

// Says that a run on the CPU leaves a GPU idle; empty: it does not. Pure.
std::string idle_gpu_note(const ComputeOptions& options, const backend::CudaReport& report);
// Throw UsageError for what this build or this machine cannot do: of a process that computes alone, and of worker
// `slot` of a host.
std::unique_ptr<backend::Backend> choose_backend(const ComputeOptions& options);
std::unique_ptr<backend::Backend> backend_of_worker(const ComputeOptions& options, int slot);
backend::DType choose_dtype(const ComputeOptions& options, const backend::Backend& backend);
// Samples of the largest shard of a whole step; evaluation takes blocks of the same size.
int largest_shard(const ComputeOptions& options);
// One thread a shard where there are several shards, else all threads on the one.
backend::CompileOptions compile_options(const ComputeOptions& options, backend::DType dtype, int top_k);

// V is a power of two and every shard of a whole step has a sample.
void check_shards(const ComputeOptions& options);
// "efficiency on N workers: 1: 100 %, 2: 100 %, 3: 67 %": V / (N * ceil(V / N)) for N up to V, at most 8 numbers.
std::string efficiency_line(int shards);

}  // namespace dtrain::config
