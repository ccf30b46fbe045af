#include "timm_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include <dtrain/base/text.hpp>

namespace dtrain::train {
namespace {

using Words = std::vector<std::string>;  // of a name, which dots separate

// Words from `first` on are these; "*" is any word.
bool continues(const Words& name, std::size_t first, std::initializer_list<std::string_view> words) {
  if (name.size() != first + words.size()) return false;
  std::size_t at = first;
  for (const std::string_view word : words) {
    if (word != "*" && word != name[at]) return false;
    ++at;
  }
  return true;
}

int number(const std::string& word) { return static_cast<int>(parse_integer(word).value_or(-1)); }

// The k-th convolution of a block or, of the same number, its norm. A block that widens nothing begins with the second.
std::string inverted_part(bool widens, int k, bool norm) {
  if (norm) return fmt::format("bn{}", k + 1);
  constexpr std::array kWide = {"conv_pw", "conv_dw", "conv_pwl"}, kNarrow = {"conv_dw", "conv_pw", ""};
  return (widens ? kWide : kNarrow).at(static_cast<std::size_t>(k));
}

// features.1.0.block.1.fc1: the squeeze-and-excitation stands before the last convolution.
std::optional<std::string> of_efficientnet(const Words& name) {
  constexpr int kStages = 7;
  if (continues(name, 0, {"classifier", "1"})) return "classifier";
  if (name.size() < 3 || name[0] != "features") return std::nullopt;
  const int stage = number(name[1]);
  if (name.size() == 3) {
    const bool stem = stage == 0, norm = name[2] == "1";
    return norm ? (stem ? "bn1" : "bn2") : (stem ? "conv_stem" : "conv_head");
  }
  if (stage < 1 || stage > kStages || !continues(name, 2, {"*", "block", "*", "*"})) return std::nullopt;
  const std::string block = fmt::format("blocks.{}.{}.", stage - 1, name[2]);
  if (name[5] == "fc1") return block + "se.conv_reduce";
  if (name[5] == "fc2") return block + "se.conv_expand";
  const bool widens = stage > 1;
  const int part = number(name[4]), last = widens ? 3 : 2;
  if (part < 0 || part > last) return std::nullopt;
  return block + inverted_part(widens, part == last ? part - 1 : part, name[5] == "1");
}

// features.4.conv.1.0; features counts through all stages.
std::optional<std::string> of_mobilenet_v2(const Words& name) {
  constexpr std::array kBlocks = {1, 2, 3, 4, 3, 3, 1};
  if (continues(name, 0, {"classifier", "1"})) return "classifier";
  if (name.size() < 3 || name[0] != "features") return std::nullopt;
  int block = number(name[1]);
  if (continues(name, 2, {"*"})) {
    const bool stem = block == 0, norm = name[2] == "1";
    return norm ? (stem ? "bn1" : "bn2") : (stem ? "conv_stem" : "conv_head");
  }
  if (name[2] != "conv" || name.size() < 4) return std::nullopt;
  std::size_t stage = 0;
  for (--block; stage < kBlocks.size() && block >= kBlocks[stage]; ++stage) block -= kBlocks[stage];
  const bool widens = stage > 0;
  const int part = number(name[3]), last = widens ? 2 : 1;  // the last convolution; its norm has the next number
  if (stage == kBlocks.size() || block < 0 || part < 0 || part > last + 1) return std::nullopt;
  const bool norm = part > last || (name.size() > 4 && name[4] == "1");
  return fmt::format("blocks.{}.{}.{}", stage, block, inverted_part(widens, std::min(part, last), norm));
}

// trunk_output.block2.block2-0.f.b.1
std::optional<std::string> of_regnet(const Words& name) {
  const auto part = [](const std::string& k) { return k == "0" ? "conv" : "bn"; };
  if (name.size() == 1 && name[0] == "fc") return "head.fc";
  if (continues(name, 0, {"stem", "*"})) return fmt::format("stem.{}", part(name[1]));
  if (name.size() < 5 || name[0] != "trunk_output") return std::nullopt;
  const std::size_t dash = name[2].find('-');
  if (dash == std::string::npos || !name[1].starts_with("block")) return std::nullopt;
  const std::string block = fmt::format("s{}.b{}.", name[1].substr(5), number(name[2].substr(dash + 1)) + 1);
  if (continues(name, 3, {"proj", "*"})) return block + "downsample." + part(name[4]);
  if (continues(name, 3, {"f", "se", "*"})) return block + "se." + name[5];
  if (!continues(name, 3, {"f", "*", "*"}) || name[4].size() != 1) return std::nullopt;
  return fmt::format("{}conv{}.{}", block, name[4][0] - 'a' + 1, part(name[5]));
}

// features.3.1.block.5: odd numbers are stages, the even ones between them their downsampling.
std::optional<std::string> of_convnext(const Words& name) {
  if (continues(name, 0, {"classifier", "0"})) return "head.norm";
  if (continues(name, 0, {"classifier", "2"})) return "head.fc";
  if (name.size() < 3 || name[0] != "features") return std::nullopt;
  const int part = number(name[1]);
  if (part < 0 || part > 7) return std::nullopt;
  if (name.size() == 3)
    return part == 0 ? "stem." + name[2] : fmt::format("stages.{}.downsample.{}", part / 2, name[2]);
  const std::string block = fmt::format("stages.{}.blocks.{}.", part / 2, name[2]);
  if (continues(name, 3, {"layer_scale"})) return block + "gamma";
  if (continues(name, 3, {"block", "0"})) return block + "conv_dw";
  if (continues(name, 3, {"block", "2"})) return block + "norm";
  if (continues(name, 3, {"block", "3"})) return block + "mlp.fc1";
  if (continues(name, 3, {"block", "5"})) return block + "mlp.fc2";
  return std::nullopt;
}

// encoder.layers.encoder_layer_3.self_attention.in_proj
std::optional<std::string> of_vit(const Words& name) {
  constexpr std::string_view kLayer = "encoder_layer_";
  if (continues(name, 0, {"conv_proj"})) return "patch_embed.proj";
  if (continues(name, 0, {"class_token"})) return "cls_token";
  if (continues(name, 0, {"encoder", "pos_embedding"})) return "pos_embed";
  if (continues(name, 0, {"encoder", "ln"})) return "norm";
  if (continues(name, 0, {"heads", "head"})) return "head";
  if (name.size() < 4 || !name[2].starts_with(kLayer)) return std::nullopt;
  const std::string block = fmt::format("blocks.{}.", name[2].substr(kLayer.size()));
  if (continues(name, 3, {"ln_1"})) return block + "norm1";
  if (continues(name, 3, {"ln_2"})) return block + "norm2";
  if (continues(name, 3, {"self_attention", "in_proj"})) return block + "attn.qkv";
  if (continues(name, 3, {"self_attention", "out_proj"})) return block + "attn.proj";
  if (continues(name, 3, {"mlp", "0"})) return block + "mlp.fc1";
  if (continues(name, 3, {"mlp", "3"})) return block + "mlp.fc2";
  return std::nullopt;
}

}  // namespace

std::optional<std::string> timm_name(const std::string& network, const std::string& layer) {
  const Words name = split(layer, '.');
  if (network.starts_with("efficientnet_")) return of_efficientnet(name);
  if (network == "mobilenet_v2") return of_mobilenet_v2(name);
  if (network.starts_with("regnet_")) return of_regnet(name);
  if (network.starts_with("convnext_")) return of_convnext(name);
  if (network.starts_with("vit_")) return of_vit(name);
  return std::nullopt;
}

}  // namespace dtrain::train
