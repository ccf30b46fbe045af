#include "pretrained.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/value_range.hpp>
#include <dtrain/net/http.hpp>
#include <dtrain/nn/networks.hpp>
#include <dtrain/train/weights.hpp>

namespace dtrain::config {
namespace {

constexpr std::array<float, 3> kImageNetMean = {123.675f, 116.28f, 103.53f}, kImageNetStd = {58.395f, 57.12f, 57.375f};
constexpr std::array<float, 3> kHalves = {127.5f, 127.5f, 127.5f};

// The document of an export is not checked when the file is read.
nn::Shape shape_from(const Json& preprocessing, const Path& file) {
  const Json& stated = preprocessing.at("image_shape");
  const auto is_extent = [](const Json& each) {
    return each.is_integer() && each.as_integer() >= 1 && std::in_range<int>(each.as_integer());
  };
  const bool is_shape =
      stated.is_array() && stated.as_array().size() == 3 && std::ranges::all_of(stated.as_array(), is_extent);
  if (!is_shape) {
    throw DataError(fmt::format("{}: its image_shape, {}, is no channels, height and width",
                                net::shown_url(file.string()), stated.dump()),
                    "the file is damaged: export or copy it again");
  }
  const auto extent = [&](std::size_t i) { return static_cast<int>(stated.as_array()[i].as_integer()); };
  return {extent(0), extent(1), extent(2)};
}

// Files of other programs may have names of classes alone.
bool says_pixels(const Json& preprocessing) {
  return preprocessing.is_object() && preprocessing.find("image_shape") != nullptr;
}

// A detector's pictures are whole. Those of the classifier that becomes its backbone are cut out, and small.
bool says_image(const Json& preprocessing, const std::string& network) {
  if (!says_pixels(preprocessing)) return false;
  const Json* const crop = preprocessing.find("crop");
  return !nn::is_detector(network) || (crop && crop->as_string() == kWholePictures);
}

struct UsualPixels {
  nn::Shape image;
  int resize = 0;
  bool symmetric = false;
};

// How weights that others trained on ImageNet want their images; a model in ONNX states the size. nullopt: nothing
// shows that these are such weights. MXNet's scripts prepare images by options of these names and defaults.
std::optional<UsualPixels> usual_pixels(const Path& file, const std::string& network) {
  const bool is_onnx = network.ends_with(".onnx");
  const bool is_mxnet = train::file_of_weights(file).extension().string().starts_with(".params");  // #sha256= of a URL
  if (is_mxnet || (!is_onnx && !nn::is_published(network))) return std::nullopt;
  const nn::PretrainedImages usual = nn::pretrained_images(network);
  UsualPixels pixels{{3, usual.size, usual.size}, usual.resize, usual.symmetric};
  if (is_onnx) pixels.image = train::network_of_onnx_model(network).input();
  return pixels;
}

void take_usual_pixels(const UsualPixels& usual, const std::string& network, const OptionSet& set, DataOptions& data) {
  if (!set.chosen("rgb-mean")) data.augment.mean = usual.symmetric ? kHalves : kImageNetMean;
  if (!set.chosen("rgb-std")) data.augment.std = usual.symmetric ? kHalves : kImageNetStd;
  if (!set.chosen("resize")) data.augment.resize = data.image.h * usual.resize / nn::pretrained_images(network).size;
}

}  // namespace

void bind_pretrained(OptionSet& set, Pretrained& pretrained) {
  set.group("Pretrained weights");
  set.add("--pretrained", pretrained.file,
          "file with weights to begin with: safetensors, a state dict of PyTorch, an ONNX model, .npz or MXNet's "
          ".params; the prefix of a checkpoint; or URL#sha256=HEX, with the SHA-256 of the file. Images get the "
          "size, mean and deviation that these weights expect, and the last layer begins anew where the number of "
          "classes differs")
      .offers = Offers::files;
  set.add("--finetune", pretrained.finetune,
          "file with weights to begin with, as --pretrained takes it. The weights and the number of pictures choose "
          "every option that is not given: network, batch, epochs, rates, frozen layers and augmentation; `train` "
          "prints them")
      .offers = Offers::files;
  set.add("--new-head", pretrained.new_head, "with --pretrained, the last layer begins anew in any case");
  set.add("--freeze", pretrained.freeze, "N|PATTERN",
          "layers that stay as they are, separated by commas: N for the first N convolutions and dense layers, "
          "backbone for all but the last, and in a detector for those below its feature pyramid, or a pattern of "
          "layers' names; their batch norms keep their statistics (default: none, or those of the checkpoint)");
}

bool suit_weights(const Path& file, const std::string& network, const OptionSet& set, DataOptions& data) {
  const Json stored = train::preprocessing_of_weights(file);
  const auto usual = usual_pixels(file, network);
  if (!set.chosen("image-shape")) {
    if (says_image(stored, network)) {
      data.image = shape_from(stored, file);
    } else if (usual) {
      data.image = usual->image;
    } else if (!says_pixels(stored) && !nn::is_for_small_images(network)) {
      data.image = {3, nn::PretrainedImages{}.size, nn::PretrainedImages{}.size};
    }
  }
  if (!says_pixels(stored)) {
    if (usual) take_usual_pixels(*usual, network, set, data);
    return false;
  }
  take_preprocessing(stored, set, data);
  if (!set.chosen("resize")) {
    const std::int64_t scaled = std::int64_t{data.augment.resize} * data.image.h / shape_from(stored, file).h;
    data.augment.resize = static_cast<int>(scaled);
  }
  return true;
}

void suit_anchors(const Path& file, const OptionSet& set, nn::NetworkOptions& network) {
  if (set.chosen("anchor-size") || !nn::is_detector(network.name)) return;
  network.anchor_size = train::anchor_size_of_weights(file);
}

void suit_network_options(const Path& file, const OptionSet& set, nn::NetworkOptions& network) {
  const auto stated = train::stated_network_of_weights(file);
  if (!stated || stated->name != network.name) return;
  const auto take = [&](const char* option, const auto& value, auto& field) {
    if (!set.chosen(option)) field = value;
  };
  take("num-layers", stated->num_layers, network.num_layers);
  take("width", stated->width, network.width);
  take("batch-norm", stated->batch_norm, network.batch_norm);
  take("backbone", stated->backbone, network.backbone);
  take("proposals", stated->proposals, network.proposals);
}

void require_image_of(const train::Checkpoint& checkpoint, const std::optional<nn::Shape>& chosen) {
  const nn::Shape image = checkpoint.graph.input();
  if (!chosen || *chosen == image) return;
  throw UsageError(fmt::format("--image-shape {},{},{}: the network takes images of {},{},{}", chosen->c, chosen->h,
                               chosen->w, image.c, image.h, image.w),
                   "leave --image-shape out; a run of `train --pretrained` or `import` chooses another size");
}

// A model of another program may take anything, such as maps of depth beside the colours.
static void require_channels_of_pictures(const nn::Graph& graph) {
  const int channels = graph.input().c;
  if (channels == 1 || channels == 3) return;
  throw DataError(
      fmt::format("{} takes images of {} channels, and pictures give 1 or 3", graph.name, channels),
      "choose a network of grey or coloured images; `dtrain inspect` and `dtrain export` take this one as well");
}

static void require_pixels_of(const train::Checkpoint& checkpoint, const OptionSet& set, const DataOptions& data) {
  require_channels_of_pictures(checkpoint.graph);
  require_image_of(checkpoint, set.chosen("image-shape") ? std::optional(data.image) : std::nullopt);
  if (!set.chosen("resize") || !nn::detection_of(checkpoint.graph)) return;
  throw SettingError(
      "resize", fmt::format("{} is a detector, which scales pictures to fit into its input", checkpoint.graph.name),
      "leave it out");
}

std::string pixels_text(const DataOptions& data) {
  const data::Augment& augment = data.augment;
  std::string text = fmt::format("--image-shape {},{},{} --rgb-mean {} --rgb-std {}", data.image.c, data.image.h,
                                 data.image.w, fmt::join(augment.mean, ","), fmt::join(augment.std, ","));
  if (augment.resize > 0) text += fmt::format(" --resize {}", augment.resize);
  if (test_views(data) != 1) text += fmt::format(" --test-views {}", test_views(data));
  return text;
}

void note_assumed_pixels(const Path& file, const OptionSet& set, const DataOptions& data, Reporter& reporter) {
  if (set.chosen("image-shape") && set.chosen("rgb-mean") && set.chosen("rgb-std")) return;
  reporter.note(
      fmt::format("{} does not say how its pixels are prepared: they are taken as by {}; these options choose "
                  "otherwise",
                  net::shown_url(file.string()), pixels_text(data)));
}

static void take_stored_pixels(const train::Checkpoint& checkpoint, const Path& file, const OptionSet& set,
                               DataOptions& data, Reporter& reporter) {
  data.image = checkpoint.graph.input();
  data.classes = checkpoint.graph.classes();
  const Json& stored = checkpoint.job.preprocessing;
  data.aspect_groups = aspect_groups_of(stored);
  const bool is_onnx = file.extension() == ".onnx";
  if (!stored.is_object() && !is_onnx) return note_assumed_pixels(file, set, data, reporter);  // of MXNet
  if (says_pixels(stored) || !is_onnx) return take_preprocessing(stored, set, data);
  suit_weights(file, file.string(), set, data);
  data.image = checkpoint.graph.input();
  if (set.chosen("rgb-mean") && set.chosen("rgb-std")) return;
  reporter.note(
      fmt::format("{} does not say how its pixels are prepared: they are resized and normalised as for "
                  "networks of ImageNet; --resize, --rgb-mean and --rgb-std choose otherwise",
                  file.string()));
}

void take_pixels(const train::Checkpoint& checkpoint, const Path& file, const OptionSet& set, DataOptions& data,
                 Reporter& reporter) {
  require_pixels_of(checkpoint, set, data);
  take_stored_pixels(checkpoint, file, set, data, reporter);
  suit_network(checkpoint.graph, set, data);
  if (!data.detection) take_test_views(checkpoint.job.preprocessing, set, data);
}

}  // namespace dtrain::config
