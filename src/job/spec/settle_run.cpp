#include "settle_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

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

// Where the run begins. TrainRun::start does not say it while the run is settled: it holds a checkpoint at once, but
// pretrained weights only when the network is built that they have to fit.
struct Beginning {
  enum class From { random_weights, pretrained_weights, checkpoint };
  From from = From::random_weights;
  bool resumes = false;     // the run that saved the checkpoint goes on
  bool says_pixels = true;  // the file of pretrained weights says how its pixels are prepared

  bool is_new() const { return from != From::checkpoint; }
};

// Device and dtype. Needs the options alone.
void choose_machine(TrainRun& run, const config::OptionSet& set, Reporter& reporter) {
  const config::ComputeOptions& compute = run.options.compute;
  note_counted_gpus(set, compute, reporter);
  check_machine(run.options);
  run.backend = config::backend_of_worker(compute, 0);
  run.dtype = config::choose_dtype(compute, *run.backend);
  note_idle_gpu(compute, reporter);
}

// Access to files behind URLs, and the files under --model-prefix for this run alone. Needs the machine: a run that it
// cannot compute leaves no trace there.
void claim_files(TrainRun& run, const config::OptionSet& set, Reporter& reporter) {
  run.remote = remote_of_run(reporter);
  settle_load_epoch(set, run.remote.store, run.options);
  auto claim = claim_prefix(run.options, run.remote.store, reporter);
  if (!claim) return;
  run.prefix_lock = std::move(claim->lock);
  if (run.options.job.is_on_other_machines()) run.prefix_token = std::move(claim->token);
}

// Needs the settled batch: that of a run that is resumed must be the one of its checkpoint.
Beginning continue_checkpoint(TrainRun& run, Start start, const config::OptionSet& set) {
  config::TrainOptions& options = run.options;
  run.start = std::move(start.checkpoint);
  run.start_file = std::move(start.file);
  options.resume = options.resume && run.start->job.is_of_run();  // with imported weights, a run begins
  agree_with_checkpoint(*run.start, set, options);
  config::take_preprocessing(run.start->job.preprocessing, set, options.data);
  config::take_test_views(run.start->job.preprocessing, set, options.data);
  return {.from = Beginning::From::checkpoint, .resumes = options.resume};
}

// Takes pictures and anchors as the weights know them. Needs run.remote.
Beginning begin_with_weights(const Path& file, TrainRun& run, const config::OptionSet& set, Reporter& reporter) {
  config::TrainOptions& options = run.options;
  nn::NetworkOptions& network = options.network.options;
  fetch_pretrained(options, reporter, run.remote.store);
  const bool says_pixels = config::suit_weights(file, network.name, set, options.data);
  config::suit_anchors(file, set, network);
  return {.from = Beginning::From::pretrained_weights, .says_pixels = says_pixels};
}

// Takes from the checkpoint, else from pretrained weights and from the data, what the user did not choose. Needs the
// claim, so that no other run saves or removes checkpoints meanwhile.
Beginning choose_beginning(TrainRun& run, const config::OptionSet& set, Reporter& reporter) {
  if (auto start = find_start(run.options, set, run.remote.store, reporter))
    return continue_checkpoint(run, std::move(*start), set);
  Beginning beginning;
  if (run.options.pretrained.file) beginning = begin_with_weights(*run.options.pretrained.file, run, set, reporter);
  count_classes(set, run.remote.store, run.options);
  return beginning;
}

// How often workers exchange what, and for how long they wait for it. Needs the dtype, and what a resumed run has of
// its checkpoint: local steps, seed, batch.
void settle_exchange(TrainRun& run, const config::OptionSet& set, int workers) {
  config::TrainOptions& options = run.options;
  config::check_local_steps(options, run.dtype, set);
  config::settle_servers(options, run.dtype, set, workers);
  config::check_compression(options, run.dtype, set);
  settle_round(set, options);
}

// Schedule and optimizer. Needs the checkpoint, where there is one, to warn of rates that it was not trained with.
void settle_rates(TrainRun& run, const config::OptionSet& set, const Beginning& beginning, Reporter& reporter) {
  for (const auto settle : {config::settle_schedule, config::settle_optimizer}) {
    if (const std::string fitted = settle(set, run.options); !fitted.empty()) reporter.note(fitted);
  }
  if (beginning.is_new()) return;
  warn_of_other_rates(*run.start, set, run.options, reporter);
  if (const std::string unheeded = unheeded_batch(set, run.options); !unheeded.empty()) reporter.note(unheeded);
}

// Which worker computes what, and how gradients travel between them. Needs batch and shards of a checkpoint that is
// resumed, and an exchange without contradictions.
void settle_shares(TrainRun& run, const config::OptionSet& set, const Beginning& beginning, int workers,
                   Reporter& reporter) {
  settle_shards(set, beginning.resumes, workers, run.options);
  settle_workers(set, workers, run.options);
  settle_transport(set, run.options, reporter);
}

// The network, and the options of pictures as it takes them. Needs the checkpoint, where there is one, else the classes
// and the size of pictures that weights and data gave.
void build_graph(TrainRun& run, const config::OptionSet& set, Reporter& reporter) {
  config::TrainOptions& options = run.options;
  config::settle_aspect_groups(set, options.data);
  run.graph = graph_of_run(run.start, set, options, reporter);
  config::suit_network(run.graph, set, options.data);
}

// Refuses what this network cannot have, on this machine or in a file. Needs the backend and the graph.
void check_graph(const TrainRun& run, const config::OptionSet& set) {
  const config::TrainOptions& options = run.options;
  config::check_progressive(options, *run.backend, set);
  config::check_aspect_groups(options, *run.backend);
  config::check_synchronized_norms(run.graph, options, *run.backend);
  if (options.checkpoint_format == train::CheckpointFormat::mxnet)
    nn::graph_to_mxnet_symbol(run.graph);  // refuses what MXNet cannot say
}

// Keeps the checkpoint's best epoch only if this run validates on the same data. Needs the sources.
void agree_on_sources(TrainRun& run) {
  if (!run.sources.validation) return;
  agree_on_validation(*run.start, *run.sources.validation, config::test_views(run.options.data), with_cache(run));
}

// Needs graph, settled optimizer and sources; the names of the classes decide whether the last layer begins anew.
void load_pretrained(TrainRun& run, const config::OptionSet& set, const Beginning& beginning, Reporter& reporter) {
  config::TrainOptions& options = run.options;
  options.data.class_names = names_at(run.sources.train, run.remote.store);
  run.start = pretrained_start(options, run.graph, &reporter);
  if (!beginning.says_pixels) config::note_assumed_pixels(*options.pretrained.file, set, options.data, reporter);
}

// Needs the options of pictures as weights and network have left them. A checkpoint was trained with the same pictures,
// and a file of weights says how its pixels are prepared.
void warn_of_pixels(const TrainRun& run, const config::OptionSet& set, const Beginning& beginning, Reporter& reporter) {
  const auto windows = config::small_windows(run.sources.train, set, run.options);
  if (windows && beginning.is_new()) reporter.warn(*windows);
  const auto undivided = config::undivided_pixels(run.graph, set, run.options);
  if (undivided && beginning.from == Beginning::From::random_weights) reporter.warn(*undivided);
  const auto faint = config::faint_erasing(run.options);
  if (faint && beginning.is_new()) reporter.warn(*faint);
}

}  // namespace

// A table of contents. The order matters: each step says what it needs of those before it.
TrainRun settle_run(const config::TrainOptions& given, const config::OptionSet& set, int workers, Reporter& reporter) {
  TrainRun run;
  run.options = given;
  config::let_stronger_batch_decide(set, run.options.compute);
  choose_machine(run, set, reporter);
  claim_files(run, set, reporter);
  const Beginning beginning = choose_beginning(run, set, reporter);

  settle_exchange(run, set, workers);
  settle_rates(run, set, beginning, reporter);
  settle_shares(run, set, beginning, workers, reporter);

  build_graph(run, set, reporter);
  check_graph(run, set);
  if (!beginning.is_new()) fit_optimizer_state(*run.start, run.options, reporter);

  run.sources = config::choose_sources(run.options, set, reporter);
  if (beginning.resumes) agree_on_sources(run);
  if (beginning.from == Beginning::From::pretrained_weights) load_pretrained(run, set, beginning, reporter);

  warn_of_pixels(run, set, beginning, reporter);
  check_choices(run, set);
  run.options.data.class_names = names_of_run(run);
  check_start(run, reporter);
  settle_loss(set, beginning.resumes, run, reporter);  // its weights of classes may go by the names
  return run;
}

}  // namespace dtrain::job
