#include "executable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include <dtrain/backend/checks.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/nn/parameter_groups.hpp>

#include "convolution_fusion.hpp"

namespace dtrain::backend::cuda {
namespace {

Programs make_programs(const Model& model, const CompileOptions& options) {
  Programs programs;
  if (options.training) {
    programs.training = lower_training(model);
    programs.training.plan(options.max_samples);
  }
  programs.evaluation = lower_evaluation(model);
  programs.evaluation.plan(options.max_samples);
  return programs;
}

MemoryLayout fitting_layout(const Device& device, const Model& model, const Programs& programs,
                            const CompileOptions& options) {
  const int samples = std::max(1, options.max_samples);
  if (const std::int64_t most = most_pooled_samples(model.graph); samples > most) {
    throw UsageError(fmt::format("{} samples at once are too many for a pooling; the most are {}", samples, most),
                     "use a smaller setting 'batch-size'");
  }
  const std::string reason =
      why_too_large(model, programs, samples, needs_of_step(model, options), device.free_bytes());
  if (!reason.empty())
    throw UsageError(reason, "use a smaller setting 'batch-size', or more setting 'logical-shards' in a new run");
  return MemoryLayout(model, programs, samples);
}

void check_masks(const HostBatch& batch, const nn::Graph& graph) {
  const nn::Detections* const detection = nn::detection_of(graph);
  if (!detection || detection->mask == 0 || !batch.objects) return;
  const bool all = std::all_of(batch.objects, batch.objects + batch.n, [](const nn::PictureObjects& picture) {
    return picture.boxes.empty() || !picture.masks.empty();
  });
  DTRAIN_CHECK(all, "a detector of masks learns from true masks");
}

int group_flag(nn::ParameterGroup group) {
  switch (group) {
    case nn::ParameterGroup::matrix:
      return kMatrix;
    case nn::ParameterGroup::head:
      return kHead;
    case nn::ParameterGroup::weight:
      return 0;
    case nn::ParameterGroup::vector:
      break;
  }
  return kVector;
}

std::vector<std::uint8_t> parameter_flags(const Model& model) {
  const nn::Graph& graph = model.graph;
  std::vector<std::uint8_t> flags(static_cast<std::size_t>(graph.parameter_count), 0);
  const std::vector<bool> held = held_parameters(graph);
  const std::vector<nn::ParameterGroup> groups = nn::parameter_groups(graph);
  for (std::size_t tensor = 0; tensor < graph.parameters.size(); ++tensor) {
    const nn::TensorView& view = graph.parameters[tensor];
    const int flag = (view.decays() ? kDecays : 0) | (held[tensor] ? kHeld : 0) | group_flag(groups[tensor]);
    std::fill_n(flags.begin() + view.offset, view.size, static_cast<std::uint8_t>(flag));
  }
  for (const PackedWeight& weight : model.weights) {
    for (std::int64_t k = 0; k < weight.flat_size; ++k) flags[static_cast<std::size_t>(weight.flat + k)] |= kCopied;
  }
  return flags;
}

std::vector<float> statistic_momenta(const nn::Graph& graph) {
  std::vector<float> momenta(static_cast<std::size_t>(graph.statistic_count), 0.0f);
  for (const nn::Node& node : graph.nodes) {
    for (const int statistic : node.statistics) {
      const nn::TensorView& view = graph.statistics[static_cast<std::size_t>(statistic)];
      std::fill_n(momenta.begin() + view.offset, view.size, nn::statistics_momentum(node));
    }
  }
  return momenta;
}

}  // namespace

CudaExecutable::CudaExecutable(std::shared_ptr<Device> device, const nn::Graph& graph, const CompileOptions& options)
    : device_(std::move(device)),
      options_(options),
      model_(graph, options.dtype, options.top_k),
      contribution_(graph),
      parts_(parts_of(model_)),
      programs_(make_programs(model_, options)),
      layout_(fitting_layout(*device_, model_, programs_, options)),
      memory_(*device_, layout_.bytes()),
      inputs_(*device_, graph.input()),
      update_(*device_, model_.graph, model_.dtype,
              {.parameters = at<float>(Part::parameters),
               .statistics = at<float>(Part::statistics),
               .flags = at<std::uint8_t>(Part::flags),
               .momenta = at<float>(Part::momenta),
               .step = at<UpdateStep>(Part::update_step)},
              options.optimizer, {weight_copies(), weight_update(), gradients_of_copies()}) {
  state_.parameters.assign(static_cast<std::size_t>(graph.parameter_count), 0.0f);
  state_.statistics.assign(static_cast<std::size_t>(graph.statistic_count), 0.0f);
  upload_tables();
  write_state(std::move(state_));
}

void CudaExecutable::upload_tables() {
  upload_all(*device_, at<void>(Part::flags), parameter_flags(model_));
  upload_all(*device_, at<void>(Part::momenta), statistic_momenta(model_.graph));
  upload_all(*device_, at<void>(Part::weight_table), model_.weights);
  if (!nn::detection_of(model_.graph)) {
    upload_all(*device_, at<void>(Part::class_weights), nn::loss_of(model_.graph).class_weights);
  }
  // Gaps between the copies are read together with them, so that no calculation may find a NaN there.
  const std::vector<std::byte> zeros(static_cast<std::size_t>(model_.copied) * model_.value_bytes());
  upload_all(*device_, at<void>(Part::weights), zeros);
  upload_all(*device_, at<void>(Part::weight_gradients), zeros);
  upload_all(*device_, at<void>(Part::tickets), std::vector<std::uint32_t>(static_cast<std::size_t>(model_.tickets)));
}

Binding CudaExecutable::binding(const Program& program, int n) const {
  return {.n = n,
          .arena = at<std::byte>(Part::arena),
          .offsets = &program.offsets(),
          .parameters = at<float>(Part::parameters),
          .statistics = at<float>(Part::statistics),
          .contribution = at<float>(Part::contribution),
          .coefficients = at<float>(Part::coefficients),
          .tickets = at<std::uint32_t>(Part::tickets),
          .weights = at<void>(Part::weights),
          .weight_gradients = at<void>(Part::weight_gradients),
          .weight_table = at<PackedWeight>(Part::weight_table),
          .samples = at<Samples>(Part::samples),
          .labels = at<std::int32_t>(Part::labels),
          .sample_ids = at<std::uint32_t>(Part::sample_ids),
          .partners = at<std::int32_t>(Part::partners),
          .shares = at<float>(Part::shares),
          .class_weights = at<float>(Part::class_weights),
          .key = at<DropoutKey>(Part::key),
          .loss_scale = model_.dtype == DType::float16 ? at<float>(Part::loss_scale) : nullptr,
          .logits = at<float>(Part::logits),
          .metrics = at<float>(Part::metrics)};
}

// ---- a step

void CudaExecutable::enqueue(const HostBatch& batch, std::span<const ShardRange> shards, const StepKey& key,
                             StepSink sink) {
  const Samples samples = begin_step(batch, key);
  if (sink.host()) return compute_on_host(samples, shards, *sink.host());
  if (sink.device()) return compute_on_device(samples, shards, *sink.device());
  own_sum_ = sum_on_device(samples, shards);
}

void CudaExecutable::compute_on_host(const Samples& samples, std::span<const ShardRange> shards,
                                     ContributionSink& sink) {
  for (const ShardRange& shard : shards) {
    const std::span<float> result = sink.buffer(shard);
    if (shard.count == 0) {
      std::ranges::fill(result, 0.0f);
    } else {
      compute_shard(samples, shard);
      device_->download(result.data(), at<float>(Part::contribution), result.size_bytes());
    }
    sink.ready(shard, 0, contribution_.size(), true);
  }
}

Samples CudaExecutable::begin_step(const HostBatch& batch, const StepKey& key) {
  DTRAIN_CHECK(options_.training, "compiled for evaluation only");
  check_samples(batch);
  check_masks(batch, model_.graph);
  pack_weights();
  upload_key(key);
  gradients_in_copies_ = false;
  return inputs_.take(batch);
}

// Leaves the shard's contribution in its part of the memory.
const Recording& CudaExecutable::compute_shard(const Samples& batch, const ShardRange& shard, bool unpacks_gradients) {
  DTRAIN_CHECK(shard.count <= options_.max_samples, "a larger shard than this was compiled for");
  upload_samples(inputs_.from(batch, shard.first));
  Binding where = binding(programs_.training, shard.count);
  where.unpacks_gradients = unpacks_gradients;
  Recording& step = recording(unpacks_gradients ? training_ : training_in_copies_, programs_.training, where);
  step.run();
  return step;
}

void CudaExecutable::check_samples(const HostBatch& batch) const {
  DTRAIN_CHECK(batch.images || batch.pixels.bytes || batch.n == 0, "a batch without images");
  check_labels(batch, model_.graph.classes());
}

void CudaExecutable::upload_samples(const Samples& samples) {
  device_->upload(at<Samples>(Part::samples), &samples, sizeof samples);
}

void CudaExecutable::upload_key(const StepKey& key) {
  const DropoutKey words{static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32), key.epoch};
  device_->upload(at<DropoutKey>(Part::key), &words, sizeof words);
  device_->upload(at<float>(Part::loss_scale), &state_.loss_scale.value, sizeof(float));
}

Recording& CudaExecutable::recording(Recordings& recordings, const Program& program, const Binding& where) {
  auto& found = recordings[where.n];
  if (!found)
    found = device_->record(fused(program.bind(where), [&](const Convolution& work) { return device_->fuses(work); }));
  return *found;
}

void CudaExecutable::run_once(std::vector<Call> calls) { device_->record(std::move(calls))->run(); }

PackedWeights CudaExecutable::weight_table() const {
  return {at<PackedWeight>(Part::weight_table), static_cast<std::int32_t>(model_.weights.size()), model_.copied};
}

Call CudaExecutable::weight_copies() const {
  Call call{"copies of weights", {}};
  with_type(model_.dtype, [&]<typename T>(T) {
    call.work = PackWeights<T>{weight_table(), at<float>(Part::parameters), at<T>(Part::weights)};
  });
  return call;
}

Call CudaExecutable::weight_update() const {
  const UpdateParameters update{at<UpdateStep>(Part::update_step), at<float>(Part::parameters),
                                at<std::uint8_t>(Part::flags), model_.graph.parameter_count};
  Call call{"update of the weights", {}};
  with_type(model_.dtype, [&]<typename T>(T) {
    call.work = UpdateWeights<T>{update, weight_table(), at<T>(Part::weight_gradients), at<T>(Part::weights)};
  });
  return call;
}

Call CudaExecutable::gradients_of_copies() const {
  Call call{"gradients of copies", {}};
  with_type(model_.dtype, [&]<typename T>(T) {
    call.work = UnpackGradients<T>{weight_table(), at<T>(Part::weight_gradients), at<float>(Part::contribution), 0,
                                   model_.copied};
  });
  return call;
}

// Some rules need all gradients in one place, float16 judges them before anything moves.
bool CudaExecutable::updates_from_copies() const {
  return options_.optimizer && !StateUpdate::needs_sum({.kind = *options_.optimizer}) && model_.dtype != DType::float16;
}

void CudaExecutable::pack_weights() {
  if (std::exchange(stale_weights_, false)) run_once({weight_copies()});
}

// ---- updates

StepMetrics CudaExecutable::set_sum(StepSum sum) {
  if (const auto* const on_host = std::get_if<std::span<const float>>(&sum)) {
    DTRAIN_CHECK(static_cast<std::int64_t>(on_host->size()) == contribution_.size(), "not this graph's contribution");
    sum_ = at<float>(Part::contribution);
    gradients_in_copies_ = false;
    device_->upload(sum_, on_host->data(), on_host->size_bytes());
    const StepMetrics metrics = metrics_of(contribution_, *on_host);
    sum_count_ = static_cast<float>(metrics.count);
    return metrics;
  }
  const auto* const given = std::get_if<float*>(&sum);
  if (given) gradients_in_copies_ = false;
  sum_ = given ? *given : std::exchange(own_sum_, nullptr);
  DTRAIN_CHECK(sum_, "no contributions were added up on the device");
  std::vector<float> counted(static_cast<std::size_t>(contribution_.metrics));
  download_all(*device_, counted, sum_ + contribution_.size() - contribution_.metrics);
  ContributionLayout bare = contribution_;
  bare.gradients = bare.statistics = 0;
  const StepMetrics metrics = metrics_of(bare, counted);
  sum_count_ = static_cast<float>(metrics.count);
  return metrics;
}

std::optional<double> CudaExecutable::gradient_norm() {
  DTRAIN_CHECK(sum_ && sum_count_ > 0, "there is no sum of samples");
  // The update reads the copies again.
  if (gradients_in_copies_) run_once({gradients_of_copies()});
  return update_.gradient_length(sum_, sum_count_);
}

void CudaExecutable::apply(const Update& update) {
  DTRAIN_CHECK(sum_, "there is no sum to apply");
  move_state(std::exchange(sum_, nullptr), sum_count_, update);
}

bool CudaExecutable::overflowed(const float* sum) {
  auto* const found = at<float>(Part::loss_scale) + 1;
  run_once({{"the judgement of a sum", Fill{found, 1, 0.0f}},
            {"the judgement of a sum", FindNotFinite{sum, contribution_.gradients, found}}});
  float answer = 0;
  device_->download(&answer, found, sizeof answer);
  return answer != 0;
}

// Leaves something else in `sum`.
void CudaExecutable::move_state(float* sum, float count, const Update& update) {
  DTRAIN_CHECK(count > 0, "a step without samples");
  if (model_.dtype == DType::float16) {
    const bool lost = overflowed(sum);
    state_.loss_scale = after_step(state_.loss_scale, lost);
    if (lost) return;
  }
  ensure_optimizer(static_cast<std::size_t>(nn::optimizer_slots(update.rule.kind)));
  ensure_average(update.rule);
  auto* const slots = reinterpret_cast<float*>(optimizer_ ? optimizer_->data() : nullptr);
  auto* const average = reinterpret_cast<float*>(average_ ? average_->data() : nullptr);
  const bool from_copies = std::exchange(gradients_in_copies_, false);
  update_.run({.sum = sum, .count = count, .slots = slots, .average = average, .from_copies = from_copies}, update,
              ++state_.updates);
  stale_weights_ = false;
  stale_state_ = true;
}

// ---- evaluation

// A detector's result is what it found, and nothing is counted.
StepMetrics CudaExecutable::found_objects(const HostBatch& batch, std::span<float> results) {
  if (!results.empty()) {
    DTRAIN_CHECK(std::ssize(results) == batch.n * nn::result_size(model_.graph), "rows of what is found");
    device_->download(results.data(), at<float>(Part::logits), results.size_bytes());
  } else {
    device_->synchronize();  // the caller may change the batch
  }
  return {.count = static_cast<double>(batch.n)};
}

// The batch is brought there once. Each view is the same recording, which reads the view in Samples and counts the mean
// so far; so the last one counts the mean.
StepMetrics CudaExecutable::evaluate(const HostBatch& batch, std::span<const nn::ImageView> views,
                                     std::span<float> logits) {
  DTRAIN_CHECK(batch.n <= options_.max_samples, "more samples than this was compiled for");
  check_samples(batch);
  if (batch.n == 0) return {};
  pack_weights();
  const Binding where = binding(programs_.evaluation, batch.n);
  Samples samples = inputs_.take(batch);
  samples.partners = nullptr, samples.shares = nullptr;  // of training alone
  const bool detects = nn::detection_of(model_.graph) != nullptr;
  DTRAIN_CHECK(!detects || (views.size() == 1 && views[0] == nn::ImageView{}), "a detector sees the image as it is");
  for (const nn::ImageView& view : views) {
    samples.view = view;
    samples.begins_mean = &view == &views.front();
    upload_samples(samples);
    recording(evaluation_, programs_.evaluation, where).run();
  }
  if (detects) return found_objects(batch, logits);
  std::array<float, SoftmaxLoss::kCounts> counts{};
  device_->download(counts.data(), at<float>(Part::metrics), sizeof counts);
  if (!logits.empty()) {
    DTRAIN_CHECK(static_cast<int>(logits.size()) == batch.n * model_.graph.classes(), "logits are [n, classes]");
    device_->download(logits.data(), at<float>(Part::logits), logits.size_bytes());
  }
  return {counts[0], counts[1], counts[2], counts[3]};
}

std::uint64_t CudaExecutable::planned_bytes() const {
  std::uint64_t bytes = memory_.size() + update_.bytes() + (optimizer_ ? optimizer_->size() : 0) +
                        (average_ ? average_->size() : 0) + inputs_.bytes() + device_->workspace_bytes();
  for (const auto& slot : slots_) bytes += slot->size();
  return bytes;
}

}  // namespace dtrain::backend::cuda
