#include "recipes.hpp"

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/nn/networks.hpp>

namespace dtrain::config {

// Only what differs from the defaults that MXNet's three scripts share (common/fit.py, common/data.py). Depths are the
// networks' own: 110 for the CIFAR resnets, 50 for the others.
std::vector<Preset> recipes() {
  return {{"cifar10",
           {{"network", "resnet"},
            {"data-train", "data/cifar10_train.rec"},
            {"data-val", "data/cifar10_val.rec"},
            {"image-shape", "3,28,28"},
            {"num-classes", "10"},
            {"pad-size", "4"},
            {"max-random-h", "36"},
            {"max-random-s", "50"},
            {"max-random-l", "50"},
            {"batch-size", "128"},
            {"num-epochs", "300"},
            {"lr", "0.05"},
            {"lr-step-epochs", "200,250"}}},
          {"imagenet",
           {{"network", "resnet"},
            {"image-shape", "3,224,224"},
            {"num-classes", "1000"},
            {"max-random-h", "36"},
            {"max-random-s", "50"},
            {"max-random-l", "50"},
            {"max-random-rotate-angle", "10"},
            {"max-random-shear-ratio", "0.1"},
            {"max-random-aspect-ratio", "0.25"},
            {"num-epochs", "80"},
            {"lr-step-epochs", "30,60"}}},
          {"mnist",
           {{"network", "mlp"},
            {"data-train", "data/mnist_train.rec"},
            {"data-val", "data/mnist_val.rec"},
            {"image-shape", "1,28,28"},
            {"num-classes", "10"},
            {"rgb-mean", "0"},
            {"rgb-std", "255"},
            {"random-crop", "0"},
            {"random-mirror", "0"},
            {"batch-size", "64"},
            {"disp-batches", "100"},
            {"num-epochs", "20"},
            {"lr", "0.05"},
            {"lr-step-epochs", "10"}}},
          // Keller Jordan's airbench94_muon, by its learning rates of the mean loss; biases a quarter as fast, which is
          // steadier in narrow networks.
          {"speednet",
           {{"network", "speednet"},
            {"data-train", "data/cifar10_train.rec"},
            {"data-val", "data/cifar10_val.rec"},
            {"image-shape", "3,32,32"},
            {"num-classes", "10"},
            {"rgb-mean", "125.3,123.0,113.9"},
            {"rgb-std", "63.0,62.1,66.7"},
            {"pad-size", "2"},
            {"reflect-pad", "1"},
            {"alternate-mirror", "1"},
            {"test-views", "6"},
            {"label-smoothing", "0.2"},
            {"batch-size", "2000"},
            {"num-epochs", "8"},
            {"optimizer", "muon"},
            {"mom", "0.6"},
            {"muon-rest-mom", "0.85"},
            {"bias-lr-factor", "110"},
            {"head-lr-factor", "6.9"},
            {"lr", "0.24"},
            {"lr-schedule", "one-cycle"},
            {"lr-rise", "0"},
            {"lr-final", "0"},
            {"wd", "0.0167"}}},
          // A detector whose backbone begins with random weights, on some thousand pictures.
          {"detection",
           {{"network", "mask-rcnn"},
            {"data-train", "data/coco_train.rec"},
            {"data-val", "data/coco_val.rec"},
            {"image-shape", "3,512,512"},
            {"num-classes", "80"},
            {"rgb-mean", "123.675,116.28,103.53"},
            {"rgb-std", "58.395,57.12,57.375"},
            {"proposals", "128"},
            {"batch-size", "8"},
            {"num-epochs", "12"},
            {"optimizer", "adamw"},
            {"lr", "0.0005"},
            {"wd", "0.01"},
            {"lr-schedule", "cosine"},
            {"warmup-epochs", "0.2"},
            {"disp-batches", "20"}},
           nn::detector_names()}};
}

std::vector<std::string> recipe_names() {
  std::vector<std::string> names;
  for (const Preset& recipe : recipes()) names.push_back(recipe.name);
  return names;
}

std::optional<std::string> value_in_recipe(std::string_view recipe, std::string_view option) {
  const std::vector<Preset> all = recipes();
  const auto named = std::ranges::find(all, recipe, &Preset::name);
  DTRAIN_CHECK(named != all.end(), "--recipe takes no other names");
  for (const auto& [name, text] : named->values) {
    if (name == option) return text;
  }
  return std::nullopt;
}

}  // namespace dtrain::config
