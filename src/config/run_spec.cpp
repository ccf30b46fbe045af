#include "run_spec.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/nn/graph_json.hpp>

#include "fields.hpp"

namespace dtrain::nn {

// Exact forms, which checkpoints hold too.
static Json field_json(const Optimizer& optimizer) { return to_json(optimizer); }
static void read_field(const Json& json, Optimizer& optimizer) { optimizer = optimizer_from_json(json); }
static Json field_json(const Schedule& schedule) { return to_json(schedule); }
static void read_field(const Json& json, Schedule& schedule) { schedule = schedule_from_json(json); }

template <typename Fields>
static void fields(Fields& each, Shape& shape) {
  each("c", shape.c), each("h", shape.h), each("w", shape.w);
}

template <typename Fields>
static void fields(Fields& each, NetworkOptions& network) {
  each("name", network.name);
  each("num_layers", network.num_layers);
  each("image", network.image);
  each("classes", network.classes);
  each("width", network.width);
  each("label_smoothing", network.label_smoothing);
  each("batch_norm", network.batch_norm);
  each("drop_path", network.drop_path);
}

}  // namespace dtrain::nn

namespace dtrain::train {

static Json field_json(const GradientCompression& compression) { return compression_text(compression); }
static void read_field(const Json& json, GradientCompression& compression) {
  compression = compression_from(json.as_string());
}
template <typename Fields>
static void fields(Fields& each, ProgressiveSizes& sizes) {
  each("enabled", sizes.enabled);
  each("initial_scale", sizes.initial_scale);
  each("delay", sizes.delay);
  each("finetune", sizes.finetune);
  each("increment", sizes.increment);
}
static Json field_json(const LocalSteps& local) { return to_json(local); }
static void read_field(const Json& json, LocalSteps& local) { local = local_steps_from_json(json); }

}  // namespace dtrain::train

namespace dtrain::data {

static Json field_json(const ScaledSize& size) { return Json::array({size.height, size.width}); }
static void read_field(const Json& json, ScaledSize& size) {
  std::array<int, 2> sides{};
  config::read_field(json, sides);
  size = {sides[0], sides[1]};
}

template <typename Fields>
static void fields(Fields& each, Augment& augment) {
  each("resize", augment.resize);
  each("pad_size", augment.pad_size);
  each("fill_value", augment.fill_value);
  each("reflect_pad", augment.reflect_pad);
  each("random_crop", augment.random_crop);
  each("random_mirror", augment.random_mirror);
  each("alternate_mirror", augment.alternate_mirror);
  each("random_resized_crop", augment.random_resized_crop);
  each("min_random_area", augment.min_random_area);
  each("max_random_area", augment.max_random_area);
  each("min_random_aspect_ratio", augment.min_random_aspect_ratio);
  each("max_random_h", augment.max_random_h);
  each("max_random_s", augment.max_random_s);
  each("max_random_l", augment.max_random_l);
  each("max_random_rotate_angle", augment.max_random_rotate_angle);
  each("max_random_aspect_ratio", augment.max_random_aspect_ratio);
  each("max_random_shear_ratio", augment.max_random_shear_ratio);
  each("max_random_scale", augment.max_random_scale);
  each("min_random_scale", augment.min_random_scale);
  each("cutout", augment.cutout);
  each.named("auto_augment", augment.auto_augment, config::kAutoAugmentNames);
  each("rand_augment_ops", augment.rand_augment_ops);
  each("rand_augment_magnitude", augment.rand_augment_magnitude);
  each("brightness", augment.brightness);
  each("contrast", augment.contrast);
  each("saturation", augment.saturation);
  each("pca_noise", augment.pca_noise);
  each("random_erasing", augment.random_erasing);
  each.named("erasing_mode", augment.erasing_mode, config::kErasingNames);
  each("min_size_train", augment.min_size_train);
  each("mean", augment.mean);
  each("std", augment.std);
}

}  // namespace dtrain::data

namespace dtrain::backend {

template <typename Fields>
static void fields(Fields& each, CudaOptions& cuda) {
  each("deterministic", cuda.deterministic);
  each("tf32", cuda.tf32);
  each("plans_to_time", cuda.plans_to_time);
  each("fuses", cuda.fuses);
  each.named("own_products", cuda.own_products, config::kOwnProductsNames);
  each("plans", cuda.plans);
}

}  // namespace dtrain::backend

namespace dtrain::config {

template <typename Fields>
static void fields(Fields& each, DataOptions& data) {
  each("train", data.train);
  each("validation", data.validation);
  each("image", data.image);
  each("aspect_groups", data.aspect_groups);
  each("classes", data.classes);
  each("class_names", data.class_names);
  each("num_examples", data.num_examples);
  each("shuffle_block", data.shuffle_block);
  each("balanced_sampler", data.balanced_sampler);
  each("repeated_augment", data.repeated_augment);
  each("prefetch", data.prefetch);
  each("max_bad_records", data.max_bad_records);
  each("test_views", data.test_views);
  each("cache_dir", data.cache_dir);
  each("cache_size_gib", data.cache_size_gib);
  each("cache_decoded_gib", data.cache_decoded_gib);
  each("augment", data.augment);
}

template <typename Fields>
static void fields(Fields& each, ComputeOptions& compute) {
  each.named("device", compute.device, kDeviceNames);
  each("gpus", compute.gpus);
  each("dtype", compute.dtype);
  each("cuda", compute.cuda);
  each("hosts", compute.hosts);
  each("batch_size", compute.batch_size);
  each("global_batch", compute.global_batch);
  each("logical_shards", compute.logical_shards);
  each("seed", compute.seed);
}

template <typename Fields>
static void fields(Fields& each, JobOptions& job) {
  each("hosts", job.hosts);
  each("slots", job.slots);
  each("hostfile", job.hostfile);
  each.named("launcher", job.launcher, kLauncherNames);
  each("queue", job.queue);
  each("sge_pe", job.sge_pe);
  each("yarn_manager", job.yarn_manager);
  each("yarn_memory_mib", job.yarn_memory);
  each("yarn_cores", job.yarn_cores);
  each("sync_binary", job.sync_binary);
  each("ssh_config", job.ssh_config);
  each("announce", job.announce);
  each("sync_to", job.sync_to);
  each("environment", job.environment);
  each("servers", job.servers);
  each("max_staleness", job.max_staleness);
  each.named("kv_store", job.kv_store, kKvStoreNames);
  each.named("transport", job.transport, kTransportNames);
  each("plain_data", job.plain_data);
  each("connections", job.connections);
  each.named("gradient_dtype", job.gradient_dtype, kGradientDTypeNames);
  each("gradient_compression", job.compression);
  each("move_shards", job.move_shards);
  each("folder", job.folder);
  each("detach", job.detach);
  each("reset_hosts", job.reset_hosts);
  each("sample_ledger", job.sample_ledger);
  each("log_per_worker", job.log_per_worker);
  each("prometheus", job.prometheus);
  each("elastic", job.elastic);
  each.named("boundary", job.boundary, kBoundaryNames);
  each.named("batch", job.batch, train::kElasticBatchNames);
  each.named("rate", job.rate, train::kElasticRateNames);
  each("ramp_steps", job.ramp);
  each("min_workers", job.min_workers);
  each("max_workers", job.max_workers);
  each("allow_mass_remove", job.allow_mass_remove);
  each("prepare", job.prepare);
  each("prepare_all", job.prepare_all);
  each("notice_url", job.notice_url);
  each("mixed_hardware", job.mixed_hardware);
  each("heartbeat_timeout_s", job.heartbeat_timeout);
  each("prepare_timeout_s", job.prepare_timeout);
  each("comm_timeout_s", job.comm_timeout);
  each("hold_timeout_s", job.hold_timeout);
}

template <typename Fields>
static void fields(Fields& each, Pretrained& pretrained) {
  each("file", pretrained.file);
  each("new_head", pretrained.new_head);
  each("freeze", pretrained.freeze);
}

template <typename Fields>
static void fields(Fields& each, TrainOptions& train) {
  each("recipe", train.recipe);
  each("network", train.network.options);
  each("data", train.data);
  each("compute", train.compute);
  each.named("initializer", train.initializer, nn::kInitializerNames);
  each("optimizer", train.optimizer);
  each("schedule", train.schedule);
  each("local", train.local);
  each("progressive_resizing", train.resizing);
  each("mixup", train.mix.mixup);
  each("cutmix", train.mix.cutmix);
  each("epochs", train.epochs);
  each("top_k", train.top_k);
  each("losses", train.losses);
  each("disp_batches", train.disp_batches);
  each("monitor", train.monitor);
  each("benchmark", train.benchmark);
  each("test_io", train.test_io);
  each("dry_run", train.dry_run);
  each("pretrained", train.pretrained);
  each("model_prefix", train.model_prefix);
  each("load_epoch", train.load_epoch);
  each("resume", train.resume);
  each("force", train.force);
  each("checkpoint_every", train.checkpoint_every);
  each.named("checkpoint_format", train.checkpoint_format, train::kCheckpointFormatNames);
  each("keep_checkpoints", train.keep_checkpoints);
  each("keep_best", train.keep_best);
  each("early_stop", train.early_stop);
  each("tensorboard", train.tensorboard);
  each("job", train.job);
}

template <typename Fields>
static void fields(Fields& each, LaunchOptions& launch) {
  each("words", launch.words);
  each("ranks_per_host", launch.ranks_per_host);
  each("servers", launch.servers);
  each("fills_placeholders", launch.fills_placeholders);
  each("worker_environment", launch.worker_environment);
  each("server_environment", launch.server_environment);
  each.named("stop_when", launch.stop_when, kStopWhenNames);
  each("gpus_per_rank", launch.gpus_per_rank);
  each("stop_signal", launch.stop_signal);
  each("save_signal", launch.save_signal);
  each("save_timeout_s", launch.save_timeout);
  each("grace_s", launch.grace);
  each("max_restarts", launch.max_restarts);
  each("hides_stdout", launch.hides_stdout);
  each("hides_stderr", launch.hides_stderr);
  each("job", launch.job);
}

namespace {

// Numbers of threads suit the machine that has them, so they travel only where the user chose them.
struct Threads {
  std::optional<int> compute, data;
  template <typename Fields>
  friend void fields(Fields& each, Threads& threads) {
    each("compute", threads.compute);
    each("data", threads.data);
  }
};

Threads chosen_threads(const TrainOptions& options) {
  const TrainOptions usual = options_of_this_machine();
  Threads chosen;
  if (options.compute.threads != usual.compute.threads) chosen.compute = options.compute.threads;
  if (options.data.threads != usual.data.threads) chosen.data = options.data.threads;
  return chosen;
}

Json train_json(const TrainSpec& spec) {
  return Json::object({{"options", write_fields(spec.options)},
                       {"threads", write_fields(chosen_threads(spec.options))},
                       {"graph", nn::graph_to_json(spec.graph)},
                       {"data", spec.data},
                       {"start", spec.start},
                       {"prefix_token", spec.prefix_token}});
}

TrainSpec train_from_json(const Json& json) {
  TrainSpec spec;
  spec.options = read_fields(json.at("options"), options_of_this_machine(), "the job's options");
  const Threads chosen = read_fields(json.at("threads"), Threads{}, "the job's threads");
  if (chosen.compute) spec.options.compute.threads = *chosen.compute;
  if (chosen.data) spec.options.data.threads = *chosen.data;
  spec.graph = nn::graph_from_json(json.at("graph"), "the job's network");
  spec.data = json.at("data");
  spec.start = json.at("start").as_string();
  spec.prefix_token = json.at("prefix_token").as_string();
  return spec;
}

Json program_json(const ProgramSpec& spec) {
  return Json::object({{"options", write_fields(spec.options)}, {"program", external::to_json(spec.program)}});
}

ProgramSpec program_from_json(const Json& json) {
  return {.options = read_fields(json.at("options"), LaunchOptions{}, "the job's options"),
          .program = external::program_from_json(json.at("program"))};
}

void require_same_version(const Json& document) {
  const std::string& schema = document.at("schema").as_string();
  const std::string& version = document.at("version").as_string();
  if (schema == kRunSpecSchema && version == DTRAIN_VERSION) return;
  throw DataError(fmt::format("the job was started by dtrain {} ({}), but this is dtrain {} ({})", version, schema,
                              DTRAIN_VERSION, kRunSpecSchema),
                  "install the same dtrain on all hosts");
}

}  // namespace

const JobOptions& RunSpec::job() const {
  const auto* training = std::get_if<TrainSpec>(&work);
  return training ? training->options.job : std::get<ProgramSpec>(work).options.job;
}

RunSpec make_run_spec(std::variant<TrainSpec, ProgramSpec> work) {
  RunSpec spec{.folder = {}, .work = std::move(work)};
  spec.folder = spec.job().sync_to.empty() ? std::filesystem::current_path().string() : spec.job().sync_to;
  return spec;
}

Json to_json(const RunSpec& spec) {
  Json document = Json::object({{"schema", kRunSpecSchema}, {"version", DTRAIN_VERSION}, {"folder", spec.folder}});
  if (const auto* training = std::get_if<TrainSpec>(&spec.work)) {
    document["train"] = train_json(*training);
  } else {
    document["launch"] = program_json(std::get<ProgramSpec>(spec.work));
  }
  return document;
}

RunSpec run_spec_from_json(const Json& document) {
  require_same_version(document);
  RunSpec spec{.folder = document.at("folder").as_string(), .work = {}};
  if (const Json* launch = document.find("launch")) {
    spec.work = program_from_json(*launch);
  } else {
    spec.work = train_from_json(document.at("train"));
  }
  return spec;
}

void enter_folder(const RunSpec& spec) {
  std::error_code no_such_folder;
  std::filesystem::current_path(spec.folder, no_such_folder);
}

}  // namespace dtrain::config
