#include "checkpoint_tensors.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>

namespace dtrain::train {
namespace {

void append(std::vector<NamedTensor>& tensors, const std::vector<nn::TensorView>& views, const float* values,
            const std::string& name_prefix = {}) {
  for (const nn::TensorView& view : views) {
    tensors.push_back(
        {name_prefix + view.name, view.shape, {values + view.offset, static_cast<std::size_t>(view.size)}});
  }
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
  DTRAIN_CHECK(std::ssize(state.parameters) == graph.parameter_count, "parameters do not fit the graph");
  DTRAIN_CHECK(std::ssize(state.statistics) == graph.statistic_count, "statistics do not fit the graph");
  std::vector<NamedTensor> tensors;
  append(tensors, graph.parameters, state.parameters.data());
  append(tensors, graph.statistics, state.statistics.data());
  return tensors;
}

std::vector<NamedTensor> state_tensors(const nn::Graph& graph, const backend::ModelState& state) {
  std::vector<NamedTensor> tensors = weight_tensors(graph, state);
  const auto slot_size = static_cast<std::size_t>(graph.parameter_count);
  const std::size_t slots = slot_size == 0 ? 0 : state.optimizer.size() / slot_size;
  DTRAIN_CHECK(slots * slot_size == state.optimizer.size(), "optimizer slots do not fit the graph");
  for (std::size_t slot = 0; slot < slots; ++slot) {
    append(tensors, graph.parameters, state.optimizer.data() + slot * slot_size,
           fmt::format("{}{}/", kOptimizerTensors, slot));
  }
  if (!state.average.empty()) {
    DTRAIN_CHECK(state.average.size() == state.parameters.size() + state.statistics.size(),
                 "the average does not fit the graph");
    append(tensors, graph.parameters, state.average.data(), kAverageTensors);
    append(tensors, graph.statistics, state.average.data() + state.parameters.size(), kAverageTensors);
  }
  return tensors;
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
