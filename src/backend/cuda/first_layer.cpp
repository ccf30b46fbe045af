#include "first_layer.hpp"

#include <algorithm>

namespace dtrain::backend::cuda {
namespace {

// Channels that tensor cores are fed with at once.
std::int32_t vector_of(DType dtype) { return dtype == DType::float32 ? 1 : 8; }
std::int32_t whole_vectors(std::int32_t channels, DType dtype) {
  return static_cast<std::int32_t>(packs_of(channels, vector_of(dtype))) * vector_of(dtype);
}

// Multiplications for an element of the result, and values that are read and written for a sample: once by the loader,
// and by the two directions that read the image.
struct Cost {
  std::int64_t multiplications, values;
};

Cost cost_of(const ConvolutionShape& s, DType dtype) {
  constexpr std::int64_t kReaders = 2;
  const std::int64_t pixels = std::int64_t{s.in_h} * s.in_w, channels = whole_vectors(s.in, dtype);
  const std::int64_t filling = channels == s.in ? 0 : 2 * channels;
  return {std::int64_t{s.kernel_h} * s.kernel_w * channels, pixels * (s.in + kReaders * (s.in + filling))};
}

std::vector<int> readers_of(const nn::Graph& graph, int node) {
  std::vector<int> readers;
  for (int index = 0; index < static_cast<int>(graph.nodes.size()); ++index) {
    if (std::ranges::count(graph.nodes[static_cast<std::size_t>(index)].inputs, node) > 0) readers.push_back(index);
  }
  return readers;
}

int only_reader(const nn::Graph& graph, int node) {
  const std::vector<int> readers = readers_of(graph, node);
  return readers.size() == 1 ? readers.front() : -1;
}

template <typename LayerType>
const LayerType* layer_at(const nn::Graph& graph, int node) {
  return node < 0 ? nullptr : std::get_if<LayerType>(&graph.nodes[static_cast<std::size_t>(node)].layer);
}

bool is_whitening(const nn::Convolution& layer, const nn::Shape& image, DType dtype) {
  constexpr int kWindow = Whitening<float>::side;
  const int pack = dtype == DType::float32 ? Pack<float>::size : Pack<Half>::size;
  return layer.frozen && layer.groups == 1 && image.c == Whitening<float>::channels && layer.kernel_h == kWindow &&
         layer.kernel_w == kWindow && layer.stride_h == 1 && layer.stride_w == 1 && layer.pad_h == 0 &&
         layer.pad_w == 0 && layer.out % pack == 0;
}

}  // namespace

std::optional<PixelBlocks> pixel_blocks(const ConvolutionShape& s, DType dtype) {
  if (s.stride_h != PixelBlocks::side || s.stride_w != PixelBlocks::side || s.groups != 1) return std::nullopt;
  if (s.in != 1 && s.in != 3) return std::nullopt;  // no other images are loaded as bytes
  PixelBlocks blocks{.in = s.in, .in_h = s.in_h, .in_w = s.in_w, .pad_h = s.pad_h, .pad_w = s.pad_w};
  blocks.channels = PixelBlocks::channels_of(s.in, vector_of(dtype));
  blocks.h = s.out_h + PixelBlocks::blocks_of(s.kernel_h) - 1;
  blocks.w = s.out_w + PixelBlocks::blocks_of(s.kernel_w) - 1;
  const Cost plain = cost_of(s, dtype), other = cost_of(shape_on_blocks(s, blocks), dtype);
  const bool pays = other.multiplications <= plain.multiplications && other.values < plain.values;
  return pays ? std::optional(blocks) : std::nullopt;
}

ConvolutionShape shape_on_blocks(const ConvolutionShape& plain, const PixelBlocks& blocks) {
  ConvolutionShape s = plain;
  s.in = blocks.channels, s.in_h = blocks.h, s.in_w = blocks.w;
  s.kernel_h = PixelBlocks::blocks_of(plain.kernel_h), s.kernel_w = PixelBlocks::blocks_of(plain.kernel_w);
  s.stride_h = s.stride_w = 1;
  s.pad_h = s.pad_w = 0;
  return s;
}

PackedWeight packed_weight(std::int64_t first, std::int64_t flat, const ConvolutionShape& plain,
                           const PixelBlocks* blocks) {
  const std::int64_t size = blocks ? shape_on_blocks(plain, *blocks).weights() : plain.weights();
  return {first,
          flat,
          size,
          plain.weights(),
          plain.group_in(),
          plain.kernel_h,
          plain.kernel_w,
          blocks ? blocks->channels : 0,
          false};
}

FirstLayer first_layer_of(const nn::Graph& graph, DType dtype) {
  constexpr int kInput = 0;
  const int reader = only_reader(graph, kInput);
  const auto* const layer = layer_at<nn::Convolution>(graph, reader);
  if (!layer || !layer->is_plain()) return {};
  const nn::Node& node = graph.nodes[static_cast<std::size_t>(reader)];
  const nn::Shape &in = graph.input(), &out = node.output;
  const int next = only_reader(graph, reader);
  const auto* const activation = layer_at<nn::Activation>(graph, next);
  const bool in_packs = graph.parameters[static_cast<std::size_t>(node.parameters[0])].offset % Pack<float>::size == 0;
  if (activation && activation->kind == nn::ActivationKind::gelu && in_packs && is_whitening(*layer, in, dtype)) {
    return {.convolution = reader, .blocks = {}, .activation = next};
  }
  const ConvolutionShape shape{1,
                               in.c,
                               in.h,
                               in.w,
                               out.c,
                               out.h,
                               out.w,
                               layer->kernel_h,
                               layer->kernel_w,
                               layer->stride_h,
                               layer->stride_w,
                               layer->pad_h,
                               layer->pad_w,
                               layer->groups};
  const std::optional<PixelBlocks> blocks = pixel_blocks(shape, dtype);
  return blocks ? FirstLayer{.convolution = reader, .blocks = blocks} : FirstLayer{};
}

}  // namespace dtrain::backend::cuda
