#include "npz_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/data/zip.hpp>

#include "checkpoint/byte_reader.hpp"

namespace dtrain::train {
namespace {

constexpr const char* kNpzHint = "save the arrays with numpy.savez";
constexpr std::string_view kArrayStart = "\x93NUMPY";
constexpr const char* kEnding = ".npy";

std::string dtype_of(std::string_view descr) {
  constexpr std::array<std::pair<std::string_view, const char*>, 3> kNames = {
      {{"<f4", "F32"}, {"<f8", "F64"}, {"<f2", "F16"}}};
  for (const auto& [numpy, name] : kNames) {
    if (descr == numpy) return name;
  }
  return {};
}

// What stands behind 'KEY': in the header, a Python dictionary of three entries.
std::string_view entry(const ByteReader& reader, std::string_view header, const std::string& key) {
  const std::size_t at = header.find("'" + key + "':");
  if (at == header.npos) reader.fail(fmt::format("a header without '{}'", key));
  return trim(header.substr(at + key.size() + 3));
}

std::vector<std::int64_t> shape_of(const ByteReader& reader, std::string_view tuple) {
  const std::size_t end = tuple.find(')');
  if (!tuple.starts_with('(') || end == tuple.npos) reader.fail("a header without a shape");
  std::vector<std::int64_t> shape;
  for (const std::string& word : split(tuple.substr(1, end - 1), ',')) {
    if (trim(word).empty()) continue;
    const auto extent = parse_integer(trim(word));
    if (!extent || *extent < 0) reader.fail(fmt::format("an extent '{}'", word));
    shape.push_back(*extent);
  }
  return shape;
}

std::vector<std::int64_t> column_strides(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides = packed_strides({shape.rbegin(), shape.rend()});
  std::ranges::reverse(strides);
  return strides;
}

// numpy.lib.format, versions 1 to 3. An array of other numbers has no dtype.
ForeignTensor parse_array(ByteView file, const std::string& source) {
  ByteReader reader(file, source, kNpzHint);
  if (text_of(reader.take(kArrayStart.size())) != kArrayStart) reader.fail("no array of NumPy");
  const auto version = reader.number<std::uint8_t>();
  reader.number<std::uint8_t>();
  const std::uint64_t length = version == 1 ? reader.number<std::uint16_t>() : reader.number<std::uint32_t>();
  const std::string_view header = text_of(reader.take(length));
  ForeignTensor tensor;
  const std::string_view descr = entry(reader, header, "descr");
  if (descr.starts_with('\'')) tensor.dtype = dtype_of(descr.substr(1, descr.find('\'', 1) - 1));
  tensor.shape = shape_of(reader, entry(reader, header, "shape"));
  const bool columns = entry(reader, header, "fortran_order").starts_with("True");
  tensor.strides = columns ? column_strides(tensor.shape) : packed_strides(tensor.shape);
  tensor.bytes = file.subspan(reader.position());
  return tensor;
}

// TensorPack keeps convolutions as [h, w, in, out] and dense layers as [in, out].
void to_torch_layout(ForeignTensor& tensor) {
  constexpr std::array<std::size_t, 4> kConvolution = {3, 2, 0, 1};
  constexpr std::array<std::size_t, 2> kDense = {1, 0};
  const auto reorder = [&](std::span<const std::size_t> order) {
    const auto shape = tensor.shape, strides = tensor.strides;
    for (std::size_t i = 0; i < order.size(); ++i) {
      tensor.shape[i] = shape[order[i]];
      tensor.strides[i] = strides[order[i]];
    }
  };
  if (tensor.shape.size() == 4) reorder(kConvolution);
  if (tensor.shape.size() == 2) reorder(kDense);
}

std::size_t size_of(const ForeignTensor& tensor) {
  std::size_t size = 1;
  for (const std::int64_t extent : tensor.shape) size *= static_cast<std::size_t>(extent);
  return size;
}

// The tensor has these values, which it borrows.
std::shared_ptr<const void> keep(std::shared_ptr<std::vector<float>> values, ForeignTensor& tensor) {
  tensor.dtype = "F32";
  tensor.strides = packed_strides(tensor.shape);
  tensor.bytes = std::as_bytes(std::span(*values));
  return values;
}

// TensorPack's heads of masks have no background, which is torchvision's first class and never looked at.
std::shared_ptr<const void> add_background(ForeignTensor& tensor) {
  const std::size_t size = size_of(tensor), row = size / static_cast<std::size_t>(tensor.shape[0]);
  auto values = std::make_shared<std::vector<float>>(row + size);
  copy_values(tensor, std::span(*values).subspan(row));
  ++tensor.shape[0];
  return keep(std::move(values), tensor);
}

// TensorPack's images have the order blue, green, red.
std::shared_ptr<const void> turn_colours(ForeignTensor& tensor) {
  constexpr std::size_t kColours = 3;
  auto values = std::make_shared<std::vector<float>>(size_of(tensor));
  copy_values(tensor, *values);
  const std::size_t plane = static_cast<std::size_t>(tensor.shape[2] * tensor.shape[3]);
  for (auto filter = values->begin(); filter != values->end();
       filter += static_cast<std::ptrdiff_t>(kColours * plane)) {
    std::swap_ranges(filter, filter + static_cast<std::ptrdiff_t>(plane),
                     filter + static_cast<std::ptrdiff_t>(2 * plane));
  }
  return keep(std::move(values), tensor);
}

// "gamma" -> "weight", for batch norms and the layers themselves.
const char* ending_of(std::string_view part) {
  constexpr std::array<std::pair<std::string_view, const char*>, 6> kNames = {{{"W", "weight"},
                                                                               {"b", "bias"},
                                                                               {"gamma", "weight"},
                                                                               {"beta", "bias"},
                                                                               {"mean/EMA", "running_mean"},
                                                                               {"variance/EMA", "running_var"}}};
  for (const auto& [theirs, ours] : kNames) {
    if (part == theirs) return ours;
  }
  return nullptr;
}

constexpr const char* kMaskLogits = "roi_heads.mask_predictor.mask_fcn_logits";

// A layer of a detector with a feature pyramid; nullopt: none.
std::optional<std::string> detector_layer(std::string_view layer) {
  constexpr std::array<std::pair<std::string_view, const char*>, 9> kNames = {
      {{"rpn/conv0", "rpn.head.conv.0.0"},
       {"rpn/class", "rpn.head.cls_logits"},
       {"rpn/box", "rpn.head.bbox_pred"},
       {"fastrcnn/fc6", "roi_heads.box_head.fc6"},
       {"fastrcnn/fc7", "roi_heads.box_head.fc7"},
       {"fastrcnn/outputs/class", "roi_heads.box_predictor.cls_score"},
       {"fastrcnn/outputs/box", "roi_heads.box_predictor.bbox_pred"},
       {"maskrcnn/deconv", "roi_heads.mask_predictor.conv5_mask"},
       {"maskrcnn/conv", kMaskLogits}}};
  for (const auto& [theirs, ours] : kNames) {
    if (layer == theirs) return ours;
  }
  struct Numbered {
    std::string_view theirs;
    const char* ours;
    int first;  // of theirs; ours begin at 0
  };
  constexpr std::array<Numbered, 3> kNumbered = {{{"fpn/lateral_1x1_c", "backbone.fpn.inner_blocks", 2},
                                                  {"fpn/posthoc_3x3_p", "backbone.fpn.layer_blocks", 2},
                                                  {"maskrcnn/fcn", "roi_heads.mask_head", 0}}};
  for (const Numbered& each : kNumbered) {
    if (!layer.starts_with(each.theirs)) continue;
    const auto number = parse_integer(layer.substr(each.theirs.size()));
    if (number && *number >= each.first && *number < 10) return fmt::format("{}.{}.0", each.ours, *number - each.first);
  }
  return std::nullopt;
}

}  // namespace

std::string torch_name_of_tensorpack(const std::string& name) {
  std::vector<std::string> words = split(name, '/');
  if (words.size() < 2) return name;
  const auto layer_of_detector = detector_layer(name.substr(0, name.size() - words.back().size() - 1));
  if (layer_of_detector && (words.back() == "W" || words.back() == "b"))
    return fmt::format("{}.{}", *layer_of_detector, ending_of(words.back()));
  std::string block;
  std::size_t at = 0;
  if (words[0].starts_with("group") && words[1].starts_with("block") && words.size() > 3) {
    const auto group = parse_integer(words[0].substr(5));
    if (!group || *group < 0 || *group > 100) return name;
    block = fmt::format("layer{}.{}.", *group + 1, words[1].substr(5));
    at = 2;
  }
  const std::string layer = words[at++];
  const bool is_norm = words.size() > at + 1 && words[at] == "bn";
  if (is_norm) ++at;
  words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(at));
  const char* const ending = ending_of(join(words, "/"));
  if (!ending) return name;
  const std::string norm = is_norm ? "bn" : "conv";
  if (layer == "linear") return fmt::format("fc.{}", ending);
  if (layer == "conv0") return fmt::format("{}1.{}", norm, ending);
  if (block.empty()) return name;
  if (layer == "convshortcut") return fmt::format("{}downsample.{}.{}", block, is_norm ? 1 : 0, ending);
  if (!layer.starts_with("conv")) return name;
  return fmt::format("{}{}{}.{}", block, norm, layer.substr(4), ending);
}

bool is_npz_file(ByteView file) {
  const std::string_view text = text_of(file);
  return text.starts_with(data::kZipStart) && text.substr(0, 1024).find(kEnding) != text.npos;
}

NpzFile parse_npz_file(ByteView file, const std::string& source) {
  NpzFile npz;
  for (data::StoredFile& member : data::unpacked_files(file, source)) {
    if (!member.name.ends_with(kEnding)) continue;
    const std::string whole = member.name.substr(0, member.name.size() - std::string_view(kEnding).size());
    const std::string place = fmt::format("{}: {}", source, whole);
    ForeignTensor tensor = parse_array(member.bytes, place);
    if (tensor.dtype.empty()) continue;  // a count of steps, a text
    const std::string name = whole.ends_with(":0") ? whole.substr(0, whole.size() - 2) : whole;
    tensor.name = torch_name_of_tensorpack(name);
    if (tensor.name != name) to_torch_layout(tensor);
    try {
      check_tensor_bytes(tensor);
    } catch (const DataError& error) {
      throw DataError(fmt::format("{}: {}", place, error.what()), kNpzHint);
    }
    const bool of_colours = tensor.name == "conv1.weight" && tensor.name != name && tensor.shape.size() == 4;
    if (of_colours && tensor.shape[1] == 3) npz.owners.push_back(turn_colours(tensor));
    const bool of_masks = tensor.name.starts_with(kMaskLogits) && tensor.name != name && !tensor.shape.empty();
    if (of_masks && tensor.shape[0] > 0) npz.owners.push_back(add_background(tensor));
    npz.tensors.push_back(std::move(tensor));
    if (member.owner) npz.owners.push_back(std::move(member.owner));
  }
  return npz;
}

}  // namespace dtrain::train
