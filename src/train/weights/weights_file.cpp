#include "weights_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/nn/graph_json.hpp>
#include <dtrain/nn/networks.hpp>
#include <dtrain/train/checkpoint.hpp>

#include "checkpoint/manifest.hpp"
#include "checkpoint/mxnet_params.hpp"
#include "export/network_text.hpp"
#include "export/onnx_documents.hpp"
#include "far_weights.hpp"
#include "foreign/npz_file.hpp"
#include "foreign/torch_file.hpp"
#include "metadata_names.hpp"
#include "onnx_network.hpp"

namespace dtrain::train {
namespace {

// In a checkpoint the optimizer's state stands beside the weights, and the average of weights, which is the better one.
// Elements have a `name`; what is returned are those of the weights, without the average's mark.
template <class Named>
std::vector<Named> only_weights(std::vector<Named> all) {
  const auto is_average = [](const Named& each) { return each.name.starts_with(kAverageTensors); };
  const bool averaged = std::ranges::any_of(all, is_average);
  std::erase_if(
      all, [&](const Named& each) { return averaged ? !is_average(each) : each.name.starts_with(kOptimizerTensors); });
  for (Named& each : all) {
    if (averaged) each.name.erase(0, std::string_view(kAverageTensors).size());
  }
  return all;
}

std::vector<ForeignTensor> tensors_of_safetensors(const std::vector<SafetensorsEntry>& entries, ByteView file,
                                                  const std::string& source) {
  std::vector<ForeignTensor> tensors;
  for (const SafetensorsEntry& entry : entries) {
    tensors.push_back({.name = entry.name,
                       .shape = entry.shape,
                       .strides = packed_strides(entry.shape),
                       .dtype = entry.dtype,
                       .bytes = file.subspan(entry.begin, entry.end - entry.begin)});
    try {
      check_tensor_bytes(tensors.back());
    } catch (const DataError& error) {
      throw DataError(fmt::format("{}: tensor '{}': {}", source, entry.name, error.what()), error.hint());
    }
  }
  return tensors;
}

[[noreturn]] void refuse_damaged(const std::string& source, const std::string& what) {
  throw DataError(fmt::format("{}: damaged: {}", source, what),
                  "copy the checkpoint again, or take an older one of the run");
}

// Checks what can be checked before the tensors are read.
void check_table(ByteView file, const std::vector<SafetensorsEntry>& entries, const DataFile& expected,
                 const std::string& source) {
  if (file.size() != expected.size)
    refuse_damaged(source, fmt::format("{} bytes in place of {}", file.size(), expected.size));
  const ByteView header = entries.empty() ? file : file.first(entries.front().begin);
  if (sha256_hex(header) != expected.header_sha256) refuse_damaged(source, "its table of tensors was changed");
}

// torchvision's published weights of DenseNet and of vision transformers are older than its modules: denselayer1.norm.2
// is called norm2 since, mlp.linear_1 is mlp.0.
void renew_name_of_classifier(std::string& name) {
  for (const auto& [older, newer] : {std::pair(".mlp.linear_1", ".mlp.0"), {".mlp.linear_2", ".mlp.3"}}) {
    const std::size_t at = name.find(older);
    if (at != std::string::npos) name.replace(at, std::strlen(older), newer);
  }
  const std::size_t layer = name.find("denselayer");
  if (layer == std::string::npos) return;
  for (const std::string_view part : {".norm.", ".conv."}) {
    const std::size_t at = name.find(part, layer);
    if (at != std::string::npos) name.erase(at + part.size() - 1, 1);
  }
}

// Convolutions of torchvision's detectors before its release 0.13, by the ends of their names then and since. The heads
// of RetinaNet had a ReLU between any two of them.
std::vector<std::pair<std::string, std::string>> renewed_ends() {
  constexpr int kConvolutions = 4;
  std::vector<std::pair<std::string, std::string>> ends{{"rpn.head.conv", "rpn.head.conv.0.0"}};
  for (int k = 0; k < kConvolutions; ++k) {
    for (const char* const block : {"fpn.inner_blocks", "fpn.layer_blocks"})
      ends.emplace_back(fmt::format("{}.{}", block, k), fmt::format("{}.{}.0", block, k));
    for (const char* const head : {"classification_head.conv", "regression_head.conv"})
      ends.emplace_back(fmt::format("{}.{}", head, 2 * k), fmt::format("{}.{}.0", head, k));
    ends.emplace_back(fmt::format("mask_head.mask_fcn{}", k + 1), fmt::format("mask_head.{}.0", k));
  }
  return ends;
}

void renew_name_of_detector(std::string& name) {
  static const std::vector<std::pair<std::string, std::string>> kEnds = renewed_ends();
  for (const char* const tensor : {".weight", ".bias", "_weight", "_bias"}) {
    if (!name.ends_with(tensor)) continue;
    const std::string_view layer = std::string_view(name).substr(0, name.size() - std::strlen(tensor));
    const auto end = std::ranges::find_if(kEnds, [&](const auto& each) { return layer.ends_with(each.first); });
    if (end != kEnds.end()) name.replace(layer.size() - end->first.size(), end->first.size(), end->second);
    return;
  }
}

// "arg:conv0_weight" and "aux:bn0_moving_mean" are conv0_weight and bn0_moving_mean.
std::vector<ForeignTensor> tensors_of_mxnet(const std::vector<MxnetArray>& arrays) {
  std::vector<ForeignTensor> tensors;
  for (const MxnetArray& array : arrays) {
    const bool has_kind = array.name.starts_with("arg:") || array.name.starts_with("aux:");
    tensors.push_back({.name = has_kind ? array.name.substr(4) : array.name,
                       .shape = array.shape,
                       .strides = packed_strides(array.shape),
                       .dtype = "F32",
                       .bytes = std::as_bytes(std::span(array.values))});
  }
  return tensors;
}

// A file may hold one tensor under one name twice, but not two.
void require_distinct_names(const std::vector<ForeignTensor>& tensors, const std::string& source) {
  std::unordered_map<std::string_view, const ForeignTensor*> by_name;
  for (const ForeignTensor& tensor : tensors) {
    const ForeignTensor& first = *by_name.emplace(tensor.name, &tensor).first->second;
    if (first.bytes.data() == tensor.bytes.data() && first.shape == tensor.shape) continue;
    throw DataError(fmt::format("{}: two tensors have the name '{}'", source, tensor.name),
                    "nothing says which of them is meant: write the file again");
  }
}

// Users take the name of a network for that of its weights.
void require_weights_at(const Path& place) {
  std::error_code error;
  if (std::filesystem::status(place, error).type() != std::filesystem::file_type::not_found) return;
  if (place.extension() == ".onnx")
    throw DataError(fmt::format("{}: no such file", place.string()), "give the path of an ONNX model");
  const std::vector<std::string> networks = nn::network_names();
  const bool is_network = std::ranges::find(networks, place.string()) != networks.end();
  throw DataError(fmt::format("{}: neither a file of weights nor the prefix of a checkpoint", place.string()),
                  is_network ? "it is the name of a network: give a file with its weights, such as its publisher's, "
                               "or URL#sha256=HEX"
                             : "give a file, the prefix of a checkpoint or URL#sha256=HEX");
}

bool is_safetensors(ByteView file) { return file.size() > 8 && file[8] == std::byte{'{'}; }

}  // namespace

WeightsFile::WeightsFile(const Path& place, std::optional<nn::Shape> image, const SharedStore& store) {
  path_ = weights_on_this_machine(place, store);
  require_weights_at(path_);
  file_ = MappedFile(path_);
  read(path_, image);
  require_distinct_names(tensors_, path_.string());
  for (ForeignTensor& tensor : tensors_) {
    renew_name_of_classifier(tensor.name);
    renew_name_of_detector(tensor.name);
  }
  if (tensors_.empty() && no_graph_) throw DataError(no_graph_->what(), no_graph_->hint());
  if (tensors_.empty())
    throw DataError(path_.string() + ": holds no tensors", "name a file with the weights of a network");
}

void WeightsFile::read(const Path& path, const std::optional<nn::Shape>& image) {
  const ByteView bytes = file_.bytes();
  const std::string source = path.string();
  if (path.extension() == ".onnx") {
    read_onnx(source, image);
  } else if (is_safetensors(bytes)) {
    read_safetensors(path);
  } else if (is_npz_file(bytes)) {
    NpzFile npz = parse_npz_file(bytes, source);
    tensors_ = std::move(npz.tensors);
    owners_ = std::move(npz.owners);
  } else if (is_torch_file(bytes)) {
    tensors_ = parse_torch_file(bytes, source);
  } else if (is_mxnet_params(bytes)) {
    auto arrays = std::make_shared<std::vector<MxnetArray>>(parse_mxnet_params(bytes, source));
    tensors_ = tensors_of_mxnet(*arrays);
    owners_.push_back(std::move(arrays));
  } else {
    throw DataError(source + ": is no file of weights that dtrain knows",
                    "name a file with the weights of a network: .safetensors, .pt, .pth, .onnx, .npz or .params");
  }
}

// The file may be the tensors of a checkpoint, whose manifest knows more, or an export.
void WeightsFile::read_safetensors(const Path& path) {
  const ByteView bytes = file_.bytes();
  const std::string source = path.string();
  const std::vector<SafetensorsEntry> entries = parse_safetensors(bytes, source);
  tensors_ = tensors_of_safetensors(only_weights(entries), bytes, source);
  if (!is_checkpoint_file(path)) return read_export(export_metadata(bytes, source), source);
  const Path file = Path(path).replace_extension(".json");
  const Manifest manifest = parse_manifest(read_file(file), file.string());
  check_table(bytes, entries, manifest.data, source);
  preprocessing_ = manifest.checkpoint.job.preprocessing;
  anchor_size_ = nn::anchor_size(manifest.checkpoint.graph);
  hashes_ = only_weights(manifest.tensors);
  if (hashes_.size() != tensors_.size())
    refuse_damaged(source, fmt::format("{} weights, the manifest lists {}", tensors_.size(), hashes_.size()));
}

// `metadata`: of an export, or null.
void WeightsFile::read_export(const Json& metadata, const std::string& source) {
  if (metadata.is_null()) return;
  preprocessing_ = Json::parse(metadata.at(kExportedPreprocessing).as_string(), source);
  if (const Json* size = metadata.find(kAnchorSize))
    anchor_size_ = static_cast<int>(parse_integer(size->as_string()).value_or(0));
  if (const Json* text = metadata.find(kNetworkOptions)) network_ = network_from_text(text->as_string(), source);
}

void WeightsFile::check_values() const {
  for (std::size_t i = 0; i < hashes_.size(); ++i) {
    if (sha256_hex(tensors_[i].bytes) != hashes_[i].sha256)
      refuse_damaged(path_.string(), fmt::format("tensor '{}' was changed", hashes_[i].name));
  }
}

void WeightsFile::read_onnx(const std::string& source, const std::optional<nn::Shape>& image) {
  OnnxFile onnx = parse_onnx_file(file_.bytes(), source);
  const auto document = [&](const char* name) {
    const auto found = onnx.metadata.find(name);
    return found == onnx.metadata.end() ? Json() : Json::parse(found->second, source);
  };
  if (onnx.metadata.contains(kOnnxGraph)) {
    graph_ = document(kOnnxGraph);
    preprocessing_ = document(kOnnxPreprocessing);
    anchor_size_ = nn::anchor_size(nn::graph_from_json(graph_, source, {}, {}));
  } else {  // not dtrain's: its documents may be of another meaning
    read_onnx_network(onnx, source, image);
  }
  std::ranges::move(onnx.owners, std::back_inserter(owners_));
  std::ranges::move(onnx.tensors, std::back_inserter(tensors_));
}

void WeightsFile::read_onnx_network(OnnxFile& onnx, const std::string& source,
                                    const std::optional<nn::Shape>& image) try {
  OnnxNetwork network = network_of_onnx(onnx, source, image);
  graph_ = nn::graph_to_json(network.graph);
  const std::vector<std::string> names = names_in_metadata(onnx.metadata, network.graph.classes());
  if (!names.empty()) preprocessing_ = Json::object({{"classes", Json(Json::Array(names.begin(), names.end()))}});
  tensors_ = std::move(network.tensors);
  std::ranges::move(network.owners, std::back_inserter(owners_));
  std::unordered_set<std::string_view> taken;
  for (const ForeignTensor& tensor : tensors_) taken.insert(tensor.name);
  // Single numbers are those of operators, such as the bounds of a Clip.
  const auto is_one = [](std::int64_t extent) { return extent == 1; };
  std::erase_if(onnx.tensors, [&](const ForeignTensor& tensor) {
    return taken.contains(tensor.name) || std::ranges::all_of(tensor.shape, is_one);
  });
} catch (const DataError& error) {
  no_graph_ = error;
}

}  // namespace dtrain::train
