#include "train_run.hpp"

#include <dtrain/train/image_sizes.hpp>

#include "config/resizing/aspect_groups.hpp"
#include "data_facts.hpp"
#include "pretrained_start.hpp"
#include "train_start.hpp"

namespace dtrain::job {

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

bool has_same_bits(const TrainRun& run) {
  return run.backend->same_bits() && !run.options.job.mixed_hardware && !run.options.job.is_asynchronous();
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
