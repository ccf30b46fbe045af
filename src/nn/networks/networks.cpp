#include <dtrain/nn/networks.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

#include "families.hpp"

namespace dtrain::nn {
namespace {

struct Family {
  const char* name;
  Graph (*build)(const NetworkOptions&);
  bool has_width = false;
  bool has_depths = false;
  bool has_batch_norm_option = false;
  PretrainedImages images = {};
  bool has_drop_path = false;
  bool has_backbone = false;
  bool has_proposals = false;
};

// One network of a family.
template <auto Build, auto Variant>
Graph one_of(const NetworkOptions& options) {
  return Build(options, Variant);
}
template <TorchResnet Variant>
constexpr auto resnet = one_of<build_torch_resnet, Variant>;
template <TorchVgg Variant>
constexpr auto vgg = one_of<build_torch_vgg, Variant>;
template <Densenet Variant>
constexpr auto densenet = one_of<build_densenet, Variant>;
template <Efficientnet Variant>
constexpr auto efficientnet = one_of<build_efficientnet, Variant>;
template <Regnet Variant>
constexpr auto regnet = one_of<build_regnet, Variant>;

template <Convnext Variant>
constexpr auto convnext = one_of<build_convnext, Variant>;
template <Vit Variant>
constexpr auto vit = one_of<build_vit, Variant>;
constexpr PretrainedImages kAugreg{224, 248, true};  // of timm's weights

constexpr const char *kResnetOfTorch = "resnet-v1.5", *kLenet = "lenet", *kMlp = "mlp", *kSpeednet = "speednet";

constexpr Family kFamilies[] = {
    {"resnet", build_resnet, true, true},
    {"resnet-v1", build_resnet_v1, true, true},
    {kResnetOfTorch, resnet<TorchResnet{}>, true, true},
    {kLenet, build_lenet},
    {kMlp, build_mlp},
    {"vgg", build_vgg, false, true, true},
    {"mobilenet", build_mobilenet},
    {kSpeednet, build_speednet, true},
};

// The names of torchvision; those of timm for networks with squeeze-and-excitation and most transformers.
constexpr Family kTorchFamilies[] = {
    {"resnet18", resnet<TorchResnet{18}>, true},
    {"resnet34", resnet<TorchResnet{34}>, true},
    {"resnet50", resnet<TorchResnet{50}>, true},
    {"resnet101", resnet<TorchResnet{101}>, true},
    {"resnet152", resnet<TorchResnet{152}>, true},
    {"resnext50_32x4d", resnet<TorchResnet{50, 32, 4}>, true},
    {"resnext101_32x8d", resnet<TorchResnet{101, 32, 8}>, true},
    {"resnext101_64x4d", resnet<TorchResnet{101, 64, 4}>, true},
    {"seresnet50", resnet<TorchResnet{50, 1, 64, true}>, true},
    {"seresnext50_32x4d", resnet<TorchResnet{50, 32, 4, true}>, true},
    {"wide_resnet50_2", resnet<TorchResnet{50, 1, 128}>, true},
    {"wide_resnet101_2", resnet<TorchResnet{101, 1, 128}>, true},
    {"alexnet", build_alexnet},
    {"vgg11", vgg<TorchVgg{{1, 1, 2, 2, 2}}>},
    {"vgg11_bn", vgg<TorchVgg{{1, 1, 2, 2, 2}, true}>},
    {"vgg13", vgg<TorchVgg{{2, 2, 2, 2, 2}}>},
    {"vgg13_bn", vgg<TorchVgg{{2, 2, 2, 2, 2}, true}>},
    {"vgg16", vgg<TorchVgg{{2, 2, 3, 3, 3}}>},
    {"vgg16_bn", vgg<TorchVgg{{2, 2, 3, 3, 3}, true}>},
    {"vgg19", vgg<TorchVgg{{2, 2, 4, 4, 4}}>},
    {"vgg19_bn", vgg<TorchVgg{{2, 2, 4, 4, 4}, true}>},
    {"squeezenet1_0", build_squeezenet_1_0},
    {"squeezenet1_1", build_squeezenet_1_1},
    {"densenet121", densenet<Densenet{{6, 12, 24, 16}}>},
    {"densenet161", densenet<Densenet{{6, 12, 36, 24}, 48, 96}>},
    {"densenet169", densenet<Densenet{{6, 12, 32, 32}}>},
    {"densenet201", densenet<Densenet{{6, 12, 48, 32}}>},
    {"googlenet", build_googlenet, false, false, false, {.symmetric = true}},
    {"inception_v3", build_inception_v3, false, false, false, {299, 342, true}},
    {"mobilenet_v2", build_mobilenet_v2},
    {"mobilenet_v3_small", build_mobilenet_v3_small},
    {"mobilenet_v3_large", build_mobilenet_v3_large},
    {"efficientnet_b0", efficientnet<Efficientnet{}>, false, false, false, {}, true},
    {"efficientnet_b1", efficientnet<Efficientnet{10, 11}>, false, false, false, {240}, true},
    {"efficientnet_b2", efficientnet<Efficientnet{11, 12, 3}>, false, false, false, {288, 288}, true},
    {"efficientnet_b3", efficientnet<Efficientnet{12, 14, 3}>, false, false, false, {300, 320}, true},
    {"efficientnet_b4", efficientnet<Efficientnet{14, 18, 4}>, false, false, false, {380, 384}, true},
    {"regnet_x_400mf", regnet<Regnet{{1, 2, 7, 12}, {32, 64, 160, 400}, 16, false}>},
    {"regnet_x_800mf", regnet<Regnet{{1, 3, 7, 5}, {64, 128, 288, 672}, 16, false}>},
    {"regnet_x_1_6gf", regnet<Regnet{{2, 4, 10, 2}, {72, 168, 408, 912}, 24, false}>},
    {"regnet_x_3_2gf", regnet<Regnet{{2, 6, 15, 2}, {96, 192, 432, 1008}, 48, false}>},
    {"regnet_y_400mf", regnet<Regnet{{1, 3, 6, 6}, {48, 104, 208, 440}, 8, true}>},
    {"regnet_y_800mf", regnet<Regnet{{1, 3, 8, 2}, {64, 144, 320, 784}, 16, true}>},
    {"regnet_y_1_6gf", regnet<Regnet{{2, 6, 17, 2}, {48, 120, 336, 888}, 24, true}>},
    {"regnet_y_3_2gf", regnet<Regnet{{2, 5, 13, 1}, {72, 216, 576, 1512}, 24, true}>},
    {"convnext_tiny", convnext<Convnext{{3, 3, 9, 3}, {96, 192, 384, 768}}>, false, false, false, {224, 236}, true},
    {"convnext_small", convnext<Convnext{{3, 3, 27, 3}, {96, 192, 384, 768}}>, false, false, false, {224, 230}, true},
    {"convnext_base", convnext<Convnext{{3, 3, 27, 3}, {128, 256, 512, 1024}}>, false, false, false, {224, 232}, true},
    {"vit_b_16", vit<Vit{}>, false, false, false, {}, true},
    {"vit_tiny_patch16_224", vit<Vit{192, 3}>, false, false, false, kAugreg, true},
    {"vit_small_patch16_224", vit<Vit{384, 6}>, false, false, false, kAugreg, true},
    {"vit_base_patch16_224", vit<Vit{}>, false, false, false, kAugreg, true},
};

constexpr PretrainedImages kWhole{512, 512};

constexpr Family kDetectors[] = {
    {.name = "retinanet", .build = build_retinanet, .images = kWhole, .has_backbone = true},
    {.name = "faster-rcnn", .build = build_faster_rcnn, .images = kWhole, .has_backbone = true, .has_proposals = true},
    {.name = "mask-rcnn", .build = build_mask_rcnn, .images = kWhole, .has_backbone = true, .has_proposals = true},
};

std::vector<std::string> names_of(std::span<const Family> families) {
  std::vector<std::string> names;
  for (const Family& family : families) names.emplace_back(family.name);
  return names;
}

const Family* family_named(const std::string& name) {
  for (const std::span<const Family> families : {std::span<const Family>(kFamilies), {kTorchFamilies}, {kDetectors}}) {
    const auto found = std::ranges::find_if(families, [&](const Family& family) { return name == family.name; });
    if (found != families.end()) return &*found;
  }
  return nullptr;
}

const Family& find_family(const std::string& name) {
  if (const Family* family = family_named(name)) return *family;
  constexpr const char* kList = "`dtrain help networks` lists the names; a FILE.json or FILE.onnx is taken too";
  const auto nearest = nearest_name(name, network_names());
  throw UsageError(fmt::format("there is no network \"{}\"", name),
                   nearest ? fmt::format("did you mean {}? {}", *nearest, kList) : kList);
}

void refuse(bool given, bool known, const Family& family, const char* option) {
  if (given && !known) {
    throw UsageError(fmt::format("{} has no choice of {}", family.name, option), fmt::format("leave {} out", option));
  }
}

}  // namespace

Graph build_network(const NetworkOptions& options) {
  const Family& family = find_family(options.name);
  refuse(options.num_layers != 0, family.has_depths, family, "setting 'num-layers'");
  refuse(options.width != 0, family.has_width, family, "setting 'width'");
  refuse(options.batch_norm, family.has_batch_norm_option, family, "setting 'batch-norm'");
  refuse(options.drop_path != 0, family.has_drop_path, family, "setting 'drop-path'");
  refuse(!options.backbone.empty(), family.has_backbone, family, "setting 'backbone'");
  refuse(options.proposals != 0, family.has_proposals, family, "setting 'proposals'");
  refuse(options.anchor_size != 0, family.has_backbone, family, "setting 'anchor-size'");
  refuse(options.label_smoothing != 0, !family.has_backbone, family, "setting 'label-smoothing'");
  return family.build(options);
}

PretrainedImages pretrained_images(const std::string& network) {
  const Family* family = family_named(network);
  return family ? family->images : PretrainedImages{};
}

bool is_published(const std::string& network) {
  const bool is_of_torch = std::ranges::count(kTorchFamilies, network, &Family::name) > 0;
  return is_of_torch || is_detector(network) || network == kResnetOfTorch;
}

bool is_for_small_images(const std::string& network) {
  return network == kLenet || network == kMlp || network == kSpeednet;
}

bool has_proposals(const std::string& name) {
  const Family* family = family_named(name);
  return family && family->has_proposals;
}

std::vector<std::string> network_names() {
  std::vector<std::string> names = own_network_names();
  for (std::string& name : torch_network_names()) names.push_back(std::move(name));
  for (std::string& name : detector_names()) names.push_back(std::move(name));
  return names;
}

std::vector<std::string> detector_names() { return names_of(kDetectors); }
bool is_detector(const std::string& name) { return std::ranges::count(kDetectors, name, &Family::name) > 0; }
std::vector<std::string> own_network_names() { return names_of(kFamilies); }
std::vector<std::string> torch_network_names() { return names_of(kTorchFamilies); }

}  // namespace dtrain::nn
