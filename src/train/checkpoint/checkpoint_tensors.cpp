#include "checkpoint_tensors.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>

namespace dtrain::train {
namespace {

// values: of the first of these tensors; null: they have none.
void append(std::vector<NamedTensor>& tensors, const std::vector<nn::TensorView>& views, const float* values,
            const std::string& name_prefix = {}) {
  for (const nn::TensorView& view : views) {
    std::span<const float> part;
    if (values) part = {values + view.offset, static_cast<std::size_t>(view.size)};
    tensors.push_back({name_prefix + view.name, view.shape, part});
  }
}

// state: null for tensors without values.
std::vector<NamedTensor> tensors_of(const nn::Graph& graph, const StateParts& parts, const backend::ModelState* state) {
  const auto values = [state](std::vector<float> backend::ModelState::*buffer, std::size_t from = 0) {
    return state ? (state->*buffer).data() + from : nullptr;
  };
  using State = backend::ModelState;
  const auto slot_size = static_cast<std::size_t>(graph.parameter_count);
  std::vector<NamedTensor> tensors;
  append(tensors, graph.parameters, values(&State::parameters));
  append(tensors, graph.statistics, values(&State::statistics));
  for (std::size_t slot = 0; slot < parts.slots; ++slot)
    append(tensors, graph.parameters, values(&State::optimizer, slot * slot_size),
           fmt::format("{}{}/", kOptimizerTensors, slot));
  if (parts.averaged) {
    append(tensors, graph.parameters, values(&State::average), kAverageTensors);
    append(tensors, graph.statistics, values(&State::average, slot_size), kAverageTensors);
  }
  return tensors;
}

void check_weights(const nn::Graph& graph, const backend::ModelState& state) {
  DTRAIN_CHECK(std::ssize(state.parameters) == graph.parameter_count, "parameters do not fit the graph");
  DTRAIN_CHECK(std::ssize(state.statistics) == graph.statistic_count, "statistics do not fit the graph");
}

std::string lines_of(std::span<const TensorHash> tensors) {
  std::string text;
  for (const TensorHash& tensor : tensors) {
    text += fmt::format("{} [{}] {}\n", tensor.name, fmt::join(tensor.shape, ", "), tensor.sha256);
  }
  return text;
}

}  // namespace

std::vector<NamedTensor> weight_tensors(const nn::Graph& graph, const backend::ModelState& state) {
  check_weights(graph, state);
  return tensors_of(graph, {}, &state);
}

std::vector<NamedTensor> state_layout(const nn::Graph& graph, const StateParts& parts) {
  return tensors_of(graph, parts, nullptr);
}

std::vector<NamedTensor> state_tensors(const nn::Graph& graph, const backend::ModelState& state) {
  check_weights(graph, state);
  const auto slot_size = static_cast<std::size_t>(graph.parameter_count);
  const StateParts parts{.slots = slot_size == 0 ? 0 : state.optimizer.size() / slot_size,
                         .averaged = !state.average.empty()};
  DTRAIN_CHECK(parts.slots * slot_size == state.optimizer.size(), "optimizer slots do not fit the graph");
  DTRAIN_CHECK(!parts.averaged || state.average.size() == state.parameters.size() + state.statistics.size(),
               "the average does not fit the graph");
  return tensors_of(graph, parts, &state);
}

std::vector<TensorHash> hash_tensors(std::span<const NamedTensor> tensors) {
  std::vector<TensorHash> hashes;
  for (const NamedTensor& tensor : tensors) {
    hashes.push_back({tensor.name, tensor.shape, sha256_hex(std::as_bytes(tensor.values))});
  }
  return hashes;
}

std::string hash_of_weights(std::span<const TensorHash> parameters) {
  return sha256_hex(bytes_of(lines_of(parameters)));
}

std::string hash_of_state(std::span<const TensorHash> tensors, std::uint64_t updates, const Cursor& cursor,
                          const std::optional<backend::LossScale>& loss_scale) {
  std::string text = lines_of(tensors) + fmt::format("updates {}\nepoch {} step {} samples_seen {}\n", updates,
                                                     cursor.epoch, cursor.step, cursor.samples_seen);
  if (loss_scale) {
    text +=
        fmt::format("loss_scale {} good_steps {}\n", static_cast<double>(loss_scale->value), loss_scale->good_steps);
  }
  return sha256_hex(bytes_of(text));
}

std::optional<backend::LossScale> loss_scale_of(const Checkpoint& checkpoint) {
  if (checkpoint.job.dtype != backend::dtype_name(backend::DType::float16)) return std::nullopt;
  return checkpoint.state.loss_scale;
}

std::string weights_sha256(const Checkpoint& checkpoint) {
  const std::vector<NamedTensor> tensors = weight_tensors(checkpoint.graph, checkpoint.state);
  return hash_of_weights(hash_tensors(std::span(tensors).first(checkpoint.graph.parameters.size())));
}

std::string state_sha256(const Checkpoint& checkpoint) {
  const std::vector<TensorHash> hashes = hash_tensors(state_tensors(checkpoint.graph, checkpoint.state));
  return hash_of_state(hashes, checkpoint.state.updates, checkpoint.cursor, loss_scale_of(checkpoint));
}

}  // namespace dtrain::train
