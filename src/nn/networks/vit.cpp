// Dosovitskiy et al., "An Image is Worth 16x16 Words", 2021, as torchvision writes it; the smaller ones are timm's.
#include <fmt/format.h>

#include "families.hpp"
#include "torch_blocks.hpp"

namespace dtrain::nn {
namespace {

constexpr LayerNorm kVitNorm{.epsilon = 1e-6f};
constexpr int kVitPatch = 16, kVitLayers = 12, kVitWiden = 4;

void add_encoder_layer(Chain& net, const std::string& name, int heads, float drop) {
  const int input = net.last(), channels = net.shape().c;
  const std::string attention = name + ".self_attention";
  net.then(name + ".ln_1", kVitNorm).then(attention + ".in_proj", dense_of_pixels(3 * channels));
  net.then(attention, Attention{.heads = heads}).then(attention + ".out_proj", dense_of_pixels(channels));
  add_residual(net, attention, input, drop);
  const int middle = net.last();
  net.then(name + ".ln_2", kVitNorm).then(name + ".mlp.0", dense_of_pixels(kVitWiden * channels));
  net.then(name + ".mlp.1", Activation{ActivationKind::gelu});
  net.then(name + ".mlp.3", dense_of_pixels(channels));
  add_residual(net, name + ".mlp", middle, drop);
}

}  // namespace

Graph build_vit(const NetworkOptions& options, const Vit& variant) {
  Chain net(options.name, options.image);
  net.then("conv_proj", biased(square_convolution(variant.channels, kVitPatch, kVitPatch)));
  net.then("class_token", ClassToken{}).then("encoder.pos_embedding", Position{});
  for (int layer = 0; layer < kVitLayers; ++layer) {
    add_encoder_layer(net, fmt::format("encoder.layers.encoder_layer_{}", layer), variant.heads,
                      rising_drop(options.drop_path, layer, kVitLayers));
  }
  // The norm of each token is its own, so that of the first alone gives the same.
  net.then("encoder.first", FirstToken{}).then("encoder.ln", kVitNorm).then("heads.head", Dense{options.classes});
  return net.finish(options.label_smoothing);
}

}  // namespace dtrain::nn
