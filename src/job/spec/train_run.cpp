#include "train_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include <dtrain/base/error.hpp>
#include <dtrain/base/machine.hpp>
#include <dtrain/comm/tree.hpp>
#include <dtrain/data/class_names.hpp>
#include <dtrain/nn/graph_json.hpp>
#include <dtrain/train/image_sizes.hpp>
#include <dtrain/train/run_ends.hpp>

#include "checkpoint_agreement.hpp"
#include "config/checks/detector_options.hpp"
#include "config/checks/optimizer.hpp"
#include "config/checks/picture_size.hpp"
#include "config/checks/pixel_scale.hpp"
#include "config/checks/schedule.hpp"
#include "config/exchange/compression_options.hpp"
#include "config/exchange/local_steps_options.hpp"
#include "config/exchange/server_options.hpp"
#include "config/exchange/synchronized_norms.hpp"
#include "config/exchange/transport_choice.hpp"
#include "config/gpu/gpu_choice.hpp"
#include "config/resizing/aspect_groups.hpp"
#include "config/resizing/progressive_options.hpp"
#include "config/shard_choice.hpp"
#include "data_facts.hpp"
#include "loss_start.hpp"
#include "prefix_claim.hpp"
#include "pretrained_start.hpp"
#include "train_start.hpp"

namespace dtrain::job {
namespace {

constexpr config::Seconds kLongestRound{3600};

// Batches that are accumulated are logical shards, which are as many as a power of two.
void check_accumulation(const config::OptionSet& set, bool resumed, const config::TrainOptions& options) {
  const int batches = options.compute.accumulate;
  if (batches == 1) return;
  if (!comm::is_power_of_two(batches)) {
    throw UsageError(fmt::format("--accumulate: must be a power of two, not {}", batches),
                     fmt::format("the next power of two is {}", comm::power_of_two_at_least(batches)));
  }
  if (options.job.is_per_worker()) {
    throw UsageError("--accumulate and --elastic-batch per-worker: a worker's batch is one shard there",
                     "leave one of them out");
  }
  if (!resumed && set.chosen("logical-shards") && options.compute.logical_shards < batches) {
    throw UsageError(fmt::format("--accumulate {} and --logical-shards {}: each batch is a shard or several", batches,
                                 options.compute.logical_shards),
                     "leave --logical-shards out, or give at least as many");
  }
}

// A resumed run has V from its checkpoint.
void settle_shards(const config::OptionSet& set, bool resumed, int workers, config::TrainOptions& options) {
  config::JobOptions& job = options.job;
  check_accumulation(set, resumed, options);
  const bool free_choice = !resumed && !set.chosen("logical-shards") && !job.has_own_batches();
  if (job.elastic && job.max_workers == 0) job.max_workers = config::default_max_workers(workers);
  if (free_choice && job.is_job()) {
    options.compute.logical_shards = config::choose_shards({.workers = workers,
                                                            .max_workers = job.elastic ? job.max_workers : 0,
                                                            .accumulate = options.compute.accumulate,
                                                            .replicas = options.local.any(),
                                                            .global_batch = options.compute.samples_per_step()});
  }
  if (free_choice && !job.is_job() && options.compute.accumulate > 1)
    options.compute.logical_shards = options.compute.accumulate;
  config::check_shards(options.compute);
}

// A worker without a shard would only wait.
void settle_workers(const config::OptionSet& set, int workers, config::TrainOptions& options) {
  config::JobOptions& job = options.job;
  const int shards = options.compute.logical_shards;
  if (job.has_own_batches() || !job.is_job()) return;
  if (workers > shards && !job.elastic) {
    throw UsageError(fmt::format("{} workers for {} logical shards: {} of them would compute nothing", workers, shards,
                                 workers - shards),
                     "use fewer workers, or more --logical-shards in a new run");
  }
  if (set.chosen("max-workers") && job.max_workers > shards) {
    throw UsageError(fmt::format("--max-workers {}: a step has {} logical shards to share", job.max_workers, shards),
                     "use at most that many, or more --logical-shards in a new run");
  }
  if (job.elastic) job.max_workers = std::min(job.max_workers, shards);
}

// A batch of the loader is a whole round: while one is computed, one is loaded. A worker that is slower than the others
// is so in each of its steps.
void settle_round(const config::OptionSet& set, config::TrainOptions& options) {
  if (!options.local.any()) return;
  if (!set.chosen("prefetch")) options.data.prefetch = 1;
  config::Seconds& timeout = options.job.comm_timeout;
  if (!set.chosen("comm-timeout")) timeout = std::max(timeout, std::min(timeout * options.local.steps, kLongestRound));
}

// What needs something that other settings may leave out.
void check_choices(const TrainRun& run, const config::OptionSet& set) {
  const config::TrainOptions& options = run.options;
  config::check_schedule(options);
  nn::require_valid(options.optimizer);
  if (options.resizing.any()) {
    for (const nn::Shape& size : options.resizing.all(run.graph.input())) train::with_image(run.graph, size);
  }
  for (const nn::Shape& group : config::group_shapes(options.data)) train::with_image(run.graph, group);
  if (!run.sources.validation && (options.early_stop > 0 || options.keep_best)) {
    throw UsageError(fmt::format("--{}: there is no validation accuracy to judge by",
                                 options.early_stop > 0 ? "early-stop" : "keep-checkpoints best"),
                     "add --data-val");
  }
  config::refuse_options_of_classifiers(options, set);
  if (options.mix.any() && options.data.detection) {
    throw UsageError("--mixup and --cutmix: pictures of a detector are not mixed", "leave them out");
  }
  if (options.mix.any() && config::largest_shard(config::compute_of_worker(options)) < 2) {
    throw UsageError("--mixup and --cutmix mix the images of a logical shard, and each shard has one image",
                     "use a larger --batch-size, or fewer --logical-shards");
  }
}

// The user did not name these GPUs, so an error about them would come as a surprise.
void note_counted_gpus(const config::OptionSet& set, const config::ComputeOptions& options, Reporter& reporter) {
  const config::Option& gpus = *set.find("gpus");
  if (gpus.origin != gpus.legacy_variable || options.gpus.empty()) return;
  reporter.note(fmt::format("{}: training on --gpus {}; --device cpu trains without them", gpus.origin, options.gpus));
}

// Workers on other machines check their own machine.
void check_machine(const config::TrainOptions& options) {
  const std::vector<int> gpus = config::named_gpus(options.compute);
  if (gpus.size() > 1 && !options.job.is_on_other_machines())
    config::check_gpus_of_machine(gpus, backend::look_for_cuda());
}

void warn_of_plain_data(const config::JobOptions& job, Reporter& reporter) {
  if (!job.is_on_other_machines()) return;
  if (job.transport != comm::Transport::tcp) {
    reporter.warn(fmt::format("gradients travel between machines unencrypted and unauthenticated (--transport {})",
                              enum_name(config::kTransportNames, job.transport)));
  } else if (job.plain_data) {
    reporter.warn("gradients and states travel between machines unencrypted (--plain-data)");
  }
}

void settle_transport(const config::OptionSet& set, config::TrainOptions& options, Reporter& reporter) {
  const config::TransportRequest request{
      .chose_transport = set.chosen("transport"),
      .chose_store = set.chosen("kv-store") && !options.local.any() && !options.job.compression.any(),
      .on_gpus = config::gpu_of_slot(options.compute, 0).has_value()};
  const backend::CudaReport report =
      options.job.is_job() && request.on_gpus ? backend::look_for_cuda() : backend::CudaReport{};
  options.job.transport = config::choose_transport(options.job, request, report);
  if (options.job.transport == comm::Transport::nccl)
    reporter.note("Gradients are added up on the GPUs and travel by NCCL");
  if (options.job.is_job()) warn_of_plain_data(options.job, reporter);
}

// Looks for libraries only if the kernel shows a GPU, because that takes a while.
void note_idle_gpu(const config::ComputeOptions& options, Reporter& reporter) {
  if (nvidia_device_count() == 0) return;
  const std::string note = config::idle_gpu_note(options, backend::look_for_cuda());
  if (!note.empty()) reporter.note(note);
}

std::vector<std::string> names_at(const Path& records, const train::SharedStore& store) {
  return data::class_names(data::find_records(records.string(), store), store);
}

// The classes of the training data, or of the checkpoint where the data do not name theirs. Throws DataError where
// training data, validation data and checkpoint do not agree.
std::vector<std::string> names_of_run(const TrainRun& run) {
  const std::vector<std::string> training = names_at(run.sources.train, run.remote.store);
  const std::vector<std::string> saved =
      run.start ? config::class_names_of(run.start->job.preprocessing) : std::vector<std::string>();
  const data::ClassList checkpoint{"the checkpoint", saved};
  data::require_same_classes(checkpoint, {run.sources.train.string(), training});
  if (run.sources.validation) {
    const std::vector<std::string> names = names_at(*run.sources.validation, run.remote.store);
    const data::ClassList validation{run.sources.validation->string(), names};
    data::require_same_classes({run.sources.train.string(), training}, validation);
    data::require_same_classes(checkpoint, validation);
  }
  return training.empty() ? saved : training;
}

}  // namespace

data::RemoteOptions remote_of_run(Reporter& reporter, std::shared_ptr<const net::DelegatedCredentials> delegated) {
  net::AwsSettings settings;
  settings.delegated = std::move(delegated);
  net::ObjectLimits limits;
  limits.tries.stop_on_signal = false;
  data::RemoteOptions remote;
  remote.store = std::make_shared<net::ObjectStore>(std::move(settings), limits);
  remote.tell = [&reporter](const std::string& text) { reporter.warn(text); };
  return remote;
}

data::RemoteOptions with_cache(const TrainRun& run) {
  data::RemoteOptions remote = run.remote;
  config::set_cache(run.options.data, remote);
  return remote;
}

// A run that resumes reads none.
static std::optional<Path> weights_of(const TrainRun& run) {
  return run.start_file.empty() ? run.options.pretrained.file : std::nullopt;
}

bool uses_s3(const TrainRun& run) {
  std::string paths = run.sources.train.string() + "," + run.start_file.string();
  for (const auto& path : {run.sources.validation, run.options.model_prefix, weights_of(run)}) {
    if (path) paths.append(",").append(path->string());
  }
  return paths.find("s3://") != paths.npos;
}

void load_start(TrainRun& run) {
  const config::TrainOptions& options = run.options;
  if (!run.start_file.empty()) {
    run.start = train::load_checkpoint_file(run.start_file, run.remote.store);
  } else if (options.load_epoch) {
    run.start = train::load_checkpoint(*options.model_prefix, static_cast<std::uint32_t>(*options.load_epoch),
                                       run.graph.input(), run.graph.classes(), run.remote.store);
    run.start->best = {};  // as find_start() has it
  } else if (options.pretrained.file) {
    run.start = pretrained_start(options, run.graph, nullptr, run.remote.store);
  }
  if (run.start) complete_optimizer_state(*run.start, options);
}

// Takes the number of classes that the training records name, where the user chose no number.
void count_classes(const config::OptionSet& set, const train::SharedStore& store, config::TrainOptions& options) {
  if (set.chosen("num-classes") || options.benchmark || !options.data.train) return;
  config::require_records(*options.data.train);
  const auto classes = static_cast<int>(names_at(*options.data.train, store).size());
  if (classes == 0) return;
  options.network.known_classes = options.data.classes = classes;
}

// What the workers would only find out later: of data behind URLs they alone do. A run that is over would end without a
// word.
void check_start(const TrainRun& run, Reporter& reporter) {
  if (!run.start) return;
  agree_on_records(*run.start, run.sources.train, run.options.data.num_examples);
  const std::string over = train::why_over(*run.start, config::trainer_options(run.options, run.dtype));
  if (!over.empty()) reporter.note("Nothing is left to train: " + over);
}

TrainRun settle_run(const config::TrainOptions& given, const config::OptionSet& set, int workers, Reporter& reporter) {
  TrainRun run;
  run.options = given;
  config::TrainOptions& options = run.options;
  config::let_stronger_batch_decide(set, options.compute);
  note_counted_gpus(set, options.compute, reporter);
  check_machine(options);
  run.backend = config::backend_of_worker(options.compute, 0);
  run.dtype = config::choose_dtype(options.compute, *run.backend);
  note_idle_gpu(options.compute, reporter);
  run.remote = remote_of_run(reporter);
  settle_load_epoch(set, run.remote.store, options);
  if (auto claim = claim_prefix(options, run.remote.store, reporter)) {
    run.prefix_lock = std::move(claim->lock);
    if (options.job.is_on_other_machines()) run.prefix_token = std::move(claim->token);
  }
  if (auto start = find_start(options, set, run.remote.store, reporter)) {
    run.start = std::move(start->checkpoint);
    run.start_file = std::move(start->file);
    options.resume = options.resume && run.start->job.is_of_run();  // with imported weights, a run begins
    agree_with_checkpoint(*run.start, set, options);
    config::take_preprocessing(run.start->job.preprocessing, set, options.data);
    config::take_test_views(run.start->job.preprocessing, set, options.data);
  }
  const bool is_new = !run.start, from_weights = is_new && options.pretrained.file;
  bool says_pixels = true;
  if (from_weights) {
    fetch_pretrained(options, reporter, run.remote.store);
    says_pixels = config::suit_weights(*options.pretrained.file, options.network.options.name, set, options.data);
    config::suit_anchors(*options.pretrained.file, set, options.network.options);
  }
  if (!run.start) count_classes(set, run.remote.store, options);
  config::check_local_steps(options, run.dtype, set);
  config::settle_servers(options, run.dtype, set, workers);
  config::check_compression(options, run.dtype, set);
  settle_round(set, options);
  for (const auto settle : {config::settle_schedule, config::settle_optimizer}) {
    if (const std::string fitted = settle(set, options); !fitted.empty()) reporter.note(fitted);
  }
  if (run.start) warn_of_other_rates(*run.start, set, options, reporter);
  settle_shards(set, run.start && options.resume, workers, options);
  settle_workers(set, workers, options);
  settle_transport(set, options, reporter);
  config::settle_aspect_groups(set, options.data);
  run.graph = graph_of_run(run.start, set, options, reporter);
  config::suit_network(run.graph, set, options.data);
  config::check_progressive(options, *run.backend, set);
  config::check_aspect_groups(options, *run.backend);
  config::check_synchronized_norms(run.graph, options, *run.backend);
  if (options.checkpoint_format == "mxnet") nn::graph_to_mxnet_symbol(run.graph);  // refuses what MXNet cannot say
  if (run.start) fit_optimizer_state(*run.start, options, reporter);
  run.sources = config::choose_sources(options, set, reporter);
  if (run.start && options.resume && run.sources.validation)
    agree_on_validation(*run.start, *run.sources.validation, config::test_views(options.data), with_cache(run));
  if (from_weights) {
    options.data.class_names = names_at(run.sources.train, run.remote.store);
    run.start = pretrained_start(options, run.graph, &reporter);
    if (!says_pixels) config::note_assumed_pixels(*options.pretrained.file, set, options.data, reporter);
  }
  if (const auto line = config::small_windows(run.sources.train, set, options); line && is_new) reporter.warn(*line);
  if (const auto line = config::undivided_pixels(run.graph, set, options); line && !run.start) reporter.warn(*line);
  check_choices(run, set);
  options.data.class_names = names_of_run(run);
  check_start(run, reporter);
  settle_loss(set, run, reporter);
  return run;
}

config::TrainSpec spec_of(const TrainRun& run) {
  config::TrainOptions options = run.options;
  options.compute.global_batch = options.compute.samples_per_step();
  options.schedule.total_epochs = options.epochs;
  options.compute.dtype = backend::dtype_name(run.dtype);
  options.data.train = run.sources.train;
  options.data.validation = run.sources.validation;
  return {.options = std::move(options),
          .graph = run.graph,
          .data = data_facts(run.sources, weights_of(run), run.remote.store),
          .start = run.start_file.string(),
          .prefix_token = run.prefix_token};
}

TrainRun run_of(const config::TrainSpec& spec, int slot) {
  TrainRun run;
  run.options = spec.options;
  run.graph = spec.graph;
  config::suit_network(run.graph, run.options.data);
  run.start_file = spec.start;
  run.prefix_token = spec.prefix_token;
  run.backend = config::backend_of_worker(run.options.compute, slot);
  run.dtype = config::choose_dtype(run.options.compute, *run.backend);
  run.sources.train = run.options.data.train.value_or("");
  run.sources.validation = run.options.data.validation;
  return run;
}

static std::unique_ptr<backend::Executable> compile_with_sizes(const TrainRun& run,
                                                               const train::ProgressiveSizes& sizes) {
  const backend::CompileOptions options = config::compile_options(run.options, *run.backend, run.dtype);
  if (run.options.local.any())
    return train::compile_local(*run.backend, run.graph, options, run.options.local, run.options.optimizer.kind);
  if (sizes.any()) return train::compile_resizing(*run.backend, run.graph, options, sizes);
  if (!run.options.data.aspect_groups.empty())
    return train::compile_grouped(*run.backend, run.graph, options, config::group_shapes(run.options.data));
  return run.backend->compile(run.graph, options);
}

std::unique_ptr<backend::Executable> compile(const TrainRun& run) {
  return compile_with_sizes(run, run.options.resizing);
}

std::unique_ptr<backend::Executable> compile_at_whole_size(const TrainRun& run) {
  train::ProgressiveSizes sizes = run.options.resizing;
  sizes.delay = 0, sizes.finetune = 1;
  return compile_with_sizes(run, sizes);
}

}  // namespace dtrain::job
