// A training run that takes milliseconds: 45 small noise images in 4 classes, a network with one layer of each kind.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>

#include <dtrain/base/random.hpp>
#include <dtrain/base/stop.hpp>
#include <dtrain/data/image.hpp>
#include <dtrain/nn/synchronized_norms.hpp>
#include <dtrain/train/progressive_sizes.hpp>
#include <dtrain/train/trainer.hpp>

namespace dtrain::train {

constexpr nn::Shape kTinyImage{3, 8, 8};
constexpr int kTinyClasses = 4;
constexpr int kTinySamples = 45;

inline nn::Graph tiny_network() {
  nn::GraphBuilder builder("tiny", kTinyImage);
  int x = builder.add("conv0", nn::Convolution{.out = 8, .kernel_h = 3, .kernel_w = 3, .pad_h = 1, .pad_w = 1}, {0});
  x = builder.add("bn0", nn::BatchNorm{}, {x});
  x = builder.add("relu0", nn::Activation{}, {x});
  x = builder.add("dropout0", nn::Dropout{0.2f}, {x});
  x = builder.add("pool0", nn::Pooling{.kind = nn::PoolingKind::average, .global = true}, {x});
  return builder.finish(builder.add("fc1", nn::Dense{kTinyClasses}, {x}));
}

// Noise whose mean depends on the class.
inline void write_tiny_records(const Path& file) {
  data::RecordWriter writer(file);
  for (std::uint32_t i = 0; i < kTinySamples; ++i) {
    const int label = static_cast<int>(i % kTinyClasses);
    RandomStream random(7, RandomUse::drawing, i, 0);
    data::Image image{kTinyImage.c, kTinyImage.h, kTinyImage.w, {}};
    for (std::int64_t p = 0; p < kTinyImage.size(); ++p) {
      image.pixels.push_back(static_cast<std::uint8_t>(random.below(150) + static_cast<std::uint32_t>(label) * 30));
    }
    const std::string payload = data::encode_image(image, data::Encoding::raw);
    writer.add(i, static_cast<float>(label), bytes_of(payload));
  }
  writer.finish();
}

// A folder with the records, removed at the end, and the options of the run: 2 epochs of 5 steps, the last one smaller.
class TinyTraining : public testing::Test {
 protected:
  TinyTraining() : folder_(Path(testing::TempDir()) / ("tiny_training_" + std::to_string(::getpid()))) {
    make_folder(folder_);
    write_tiny_records(folder_ / "train.rec");
    options_.epochs = 2;
    options_.global_batch = 10;
    options_.logical_shards = 8;
    options_.seed = 3;
    options_.evaluation_block = 7;
  }
  ~TinyTraining() override {
    std::filesystem::remove_all(folder_);
    reset_stop_signal();
  }

  data::Loader loader(bool shuffle = true) const { return loader(shuffle, {}); }
  data::Loader loader(bool shuffle, const backend::BatchWish& wish) const {
    data::LoaderOptions options;
    options.shape = kTinyImage;
    options.classes = kTinyClasses;
    options.augment = {
        .pad_size = 1, .random_crop = true, .random_mirror = true, .mean = {128, 128, 128}, .std = {60, 60, 60}};
    options.seed = 3;
    options.shuffle = shuffle;
    options.as_bytes = wish.as_bytes;
    options.memory = wish.memory;
    return data::Loader(folder_ / "train.rec", options);
  }

  nn::Graph network() const {
    nn::Graph graph = tiny_network();
    if (norms_meet_) nn::synchronize_norms(graph);
    return graph;
  }

  // The reference, unless it cannot compute the network.
  std::unique_ptr<backend::Backend> make_backend() const {
    return norms_meet_ ? backend::make_cpu_backend() : backend::make_reference_backend();
  }

  // `backend` outlives what it compiles.
  std::unique_ptr<backend::Executable> compile(const backend::Backend& backend) const {
    const backend::CompileOptions options{.dtype = dtype_, .lanes = 2, .max_samples = kTinySamples, .top_k = 2};
    if (sizes_.any()) return compile_resizing(backend, network(), options, sizes_);
    if (!options_.local.any()) return backend.compile(network(), options);
    return compile_local(backend, network(), options, options_.local, options_.optimizer.kind);
  }

  // All that may happen to images, gradients and weights beside the plain step.
  void use_every_recipe() {
    options_.mix = {.mixup = 0.8f, .cutmix = 1};
    options_.optimizer.clip_norm = 0.5f;
    options_.optimizer.clip_gradient = 0.1f;
    options_.optimizer.average = 0.7f;
    options_.logical_shards = 4;  // of two samples or three
  }

  Path folder_;
  TrainerOptions options_;
  ProgressiveSizes sizes_;
  backend::DType dtype_ = backend::DType::float32;
  bool norms_meet_ = false;  // its batch norms are synchronized
};

inline void expect_same_bits(const backend::ModelState& a, const backend::ModelState& b) {
  EXPECT_EQ(a.parameters, b.parameters);
  EXPECT_EQ(a.statistics, b.statistics);
  EXPECT_EQ(a.optimizer, b.optimizer);
  EXPECT_EQ(a.average, b.average);
  EXPECT_EQ(a.updates, b.updates);
  EXPECT_EQ(a.loss_scale, b.loss_scale);
}

}  // namespace dtrain::train
