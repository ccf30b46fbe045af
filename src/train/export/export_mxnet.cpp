#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>

#include <dtrain/base/error.hpp>
#include <dtrain/base/file_exists.hpp>
#include <dtrain/nn/graph_json.hpp>
#include <dtrain/train/export.hpp>

#include "checkpoint/checkpoint_tensors.hpp"
#include "checkpoint/far_checkpoint.hpp"
#include "checkpoint/mxnet_params.hpp"

namespace dtrain::train {
namespace {

struct MxnetFiles {
  Path symbol, params;
};

MxnetFiles mxnet_files(const Path& prefix, std::uint32_t epoch) {
  return {prefix.string() + "-symbol.json", CheckpointName{prefix, epoch}.stem() + ".params"};
}

using ArraysByName = std::unordered_map<std::string, const MxnetArray*>;

// Takes the arrays of the views, "arg:NAME" or "aux:NAME", out of `arrays`: in the views' order, each of its shape.
std::vector<const MxnetArray*> take(const std::vector<nn::TensorView>& views, std::string_view kind,
                                    ArraysByName& arrays, const Path& file) {
  std::vector<const MxnetArray*> taken;
  for (const nn::TensorView& view : views) {
    const auto found = arrays.find(fmt::format("{}:{}", kind, view.name));
    if (found == arrays.end()) {
      throw DataError(fmt::format("{}: the array '{}:{}' of the network is missing", file.string(), kind, view.name));
    }
    const MxnetArray& array = *found->second;
    if (array.shape != view.shape) {
      throw DataError(fmt::format("{}: '{}' has the shape [{}], the network needs [{}]", file.string(), array.name,
                                  fmt::join(array.shape, ", "), fmt::join(view.shape, ", ")),
                      "is it the .params file of another network or another setting 'image-shape'?");
    }
    taken.push_back(&array);
    arrays.erase(found);
  }
  return taken;
}

std::vector<float> flat_buffer(std::int64_t size, const std::vector<nn::TensorView>& views,
                               const std::vector<const MxnetArray*>& arrays) {
  std::vector<float> buffer(static_cast<std::size_t>(size));
  for (std::size_t k = 0; k < views.size(); ++k) {
    std::ranges::copy(arrays[k]->values, buffer.begin() + views[k].offset);
  }
  return buffer;
}

// MXNet computes with 1 whatever a fixed gamma's array says.
void reset_fixed_gammas(const nn::Graph& graph, std::vector<float>& parameters) {
  for (const nn::Node& node : graph.nodes) {
    const auto* batch_norm = std::get_if<nn::BatchNorm>(&node.layer);
    if (!batch_norm || !batch_norm->fix_gamma) continue;
    const nn::TensorView& gamma = graph.parameters[static_cast<std::size_t>(node.parameters[0])];
    std::fill_n(parameters.begin() + gamma.offset, gamma.size, 1.0f);
  }
}

backend::ModelState read_params(const nn::Graph& graph, ByteView content, const Path& file) {
  const std::vector<MxnetArray> list = parse_mxnet_params(content, file.string());
  ArraysByName arrays;
  for (const MxnetArray& array : list) arrays.emplace(array.name, &array);

  // A symbol can ask for more room than there is: all shapes are compared before any is made.
  const std::vector<const MxnetArray*> parameters = take(graph.parameters, "arg", arrays, file);
  const std::vector<const MxnetArray*> statistics = take(graph.statistics, "aux", arrays, file);
  if (!arrays.empty()) {
    throw DataError(fmt::format("{}: the network has no place for '{}'", file.string(), arrays.begin()->first));
  }
  backend::ModelState state;
  state.parameters = flat_buffer(graph.parameter_count, graph.parameters, parameters);
  state.statistics = flat_buffer(graph.statistic_count, graph.statistics, statistics);
  reset_fixed_gammas(graph, state.parameters);
  return state;
}

std::vector<std::byte> existing(const Path& url, std::uint64_t limit, const SharedStore& store) {
  auto content = read_far(url, limit, store);
  if (!content) throw DataError(url.string() + ": is not there", "MXNet's checkpoints are a symbol and its .params");
  return std::move(*content);
}

std::string read_symbol(const Path& file, const SharedStore& store) {
  return is_far(file) ? std::string(text_of(existing(file, net::kLargestDocument, store))) : read_file(file);
}

std::string symbol_text(const nn::Graph& graph) { return nn::graph_to_mxnet_symbol(graph).dump(2); }

// Each value is a float64 at most; the rest are shapes and names.
std::uint64_t most_bytes_of_params(const nn::Graph& graph) {
  const auto values = static_cast<std::uint64_t>(graph.parameter_count + graph.statistic_count);
  return values * sizeof(double) + net::kLargestDocument;
}

}  // namespace

bool mxnet_is_there(const Path& prefix, std::uint32_t epoch, const SharedStore& store) {
  const Path params = mxnet_files(prefix, epoch).params;
  if (!is_far(prefix)) return file_exists(params);
  const std::vector<Path> found = list_far(params, store);
  return std::ranges::find(found, params) != found.end();
}

std::vector<Path> mxnet_export_files(const Path& prefix, std::uint32_t epoch) {
  const MxnetFiles files = mxnet_files(prefix, epoch);
  return {files.symbol, files.params};
}

std::string lost_in_mxnet(const nn::SoftmaxLoss& loss) {
  if (loss.kind != nn::LossKind::sigmoid) return "";
  return "MXNet's symbol ends in a softmax: its probabilities sum to 1, and are not those of a network that was "
         "trained "
         "with setting 'bce-loss'";
}

std::optional<Path> params_of_other_network(const Checkpoint& checkpoint, const Path& prefix, std::uint32_t epoch,
                                            const SharedStore& store) {
  const MxnetExports there = list_mxnet(prefix, store);
  const auto other = std::ranges::find_if(there.epochs, [&](std::uint32_t each) { return each != epoch; });
  if (!there.has_symbol || other == there.epochs.end()) return std::nullopt;
  const MxnetFiles files = mxnet_files(prefix, *other);
  if (read_symbol(files.symbol, store) == symbol_text(checkpoint.graph)) return std::nullopt;
  return files.params;
}

std::vector<Path> export_mxnet(const Checkpoint& checkpoint, const Path& prefix, std::uint32_t epoch) {
  const MxnetFiles files = mxnet_files(prefix, epoch);
  std::vector<NamedTensor> tensors = weight_tensors(checkpoint.graph, checkpoint.state);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    tensors[i].name.insert(0, i < checkpoint.graph.parameters.size() ? "arg:" : "aux:");
  }
  make_folder(prefix.parent_path());
  AtomicFile symbol(files.symbol), params(files.params);
  symbol.write(symbol_text(checkpoint.graph));
  write_mxnet_params(params, tensors);
  symbol.sync();
  params.sync();
  symbol.commit();
  params.commit();
  return {files.symbol, files.params};
}

Checkpoint import_mxnet(const Path& prefix, std::uint32_t epoch, std::optional<nn::Shape> image,
                        std::optional<int> classes, const SharedStore& store) {
  const MxnetFiles files = mxnet_files(prefix, epoch);
  const std::string source = files.symbol.string();
  const std::string symbol = read_symbol(files.symbol, store);
  Checkpoint checkpoint;
  checkpoint.graph = nn::graph_from_json(Json::parse(symbol, source), source, image, classes);
  checkpoint.state =
      is_far(prefix) ? read_params(checkpoint.graph,
                                   existing(files.params, most_bytes_of_params(checkpoint.graph), store), files.params)
                     : read_params(checkpoint.graph, MappedFile(files.params).bytes(), files.params);
  checkpoint.cursor.epoch = epoch;
  return checkpoint;
}

}  // namespace dtrain::train
