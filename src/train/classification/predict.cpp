#include <dtrain/train/predict.hpp>

#include <algorithm>
#include <vector>

#include <dtrain/backend/aligned_room.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/ordered_work.hpp>
#include <dtrain/train/image_sizes.hpp>

namespace dtrain::train {
namespace {

struct Decoded {
  std::vector<float> image = {};  // of `shape`
  std::string problem = {};
  nn::PictureObjects picture = {};  // of a detector
  nn::Shape shape = {};
};

Decoded decode(const std::string& content, const PredictOptions& options, std::size_t index, const nn::Shape& shape) {
  thread_local data::Image scratch;
  Decoded decoded{.shape = shape};
  if (options.detection) {
    decoded.shape = data::decode_whole(bytes_of(content), options.augment, *options.detection, shape, options.in_groups,
                                       scratch, decoded.image, decoded.picture);
  } else {
    decoded.image.resize(static_cast<std::size_t>(shape.size()));
    data::decode_and_augment(bytes_of(content), options.augment, {.sample = static_cast<std::uint32_t>(index)}, shape,
                             scratch, decoded.image);
  }
  return decoded;
}

// Gathers pictures until a batch is full, and computes those of one size together. One thread.
class Batcher {
 public:
  Batcher(const nn::Graph& graph, backend::Executable& executable, const PredictOptions& options,
          const std::function<void(const Prediction&)>& take)
      : executable_(executable),
        take_(take),
        views_(nn::image_views(options.views)),
        batch_(static_cast<std::size_t>(options.batch)),
        result_(static_cast<std::size_t>(nn::result_size(graph))),
        detects_(nn::detection_of(graph) != nullptr),
        images_(backend::aligned_room(memory_, batch_ * static_cast<std::size_t>(graph.input().size()))) {}

  void add(std::size_t index, Decoded decoded) {
    if (decoded.problem.empty()) ++good_;
    pictures_.push_back({index, std::move(decoded)});
    if (good_ == batch_) compute();
  }

  void compute() {
    std::vector<std::vector<float>> results(pictures_.size());
    for (std::size_t first = 0; first < pictures_.size(); ++first) {
      if (results[first].empty() && is_good(first)) compute_like(first, results);
    }
    for (std::size_t i = 0; i < pictures_.size(); ++i) {
      const auto& [index, decoded] = pictures_[i];
      if (is_good(i)) {
        take_({index, results[i], {}, &decoded.picture});
      } else {
        take_({index, {}, decoded.problem});
      }
    }
    pictures_.clear();
    good_ = 0;
  }

 private:
  struct Picture {
    std::size_t index = 0;
    Decoded decoded;
  };
  bool is_good(std::size_t i) const { return pictures_[i].decoded.problem.empty(); }

  // Those from `first` on that have its size.
  void compute_like(std::size_t first, std::vector<std::vector<float>>& results) {
    const nn::Shape shape = pictures_[first].decoded.shape;
    std::vector<std::size_t> alike;
    std::vector<nn::PictureObjects> objects;
    float* to = images_;
    for (std::size_t i = first; i < pictures_.size(); ++i) {
      const Decoded& decoded = pictures_[i].decoded;
      if (!is_good(i) || decoded.shape != shape) continue;
      to = std::ranges::copy(decoded.image, to).out;
      objects.push_back(decoded.picture);
      alike.push_back(i);
    }
    const std::vector<std::int32_t> labels(alike.size());
    const std::vector<std::uint32_t> ids(alike.size());
    backend::HostBatch batch{static_cast<int>(alike.size()), images_, labels.data(), ids.data()};
    if (detects_) batch.objects = objects.data();
    std::vector<float> logits(alike.size() * result_);
    use_size(executable_, shape);
    executable_.evaluate(batch, views_, logits);
    for (std::size_t k = 0; k < alike.size(); ++k) {
      const auto own = std::span(logits).subspan(k * result_, result_);
      results[alike[k]].assign(own.begin(), own.end());
    }
  }

  backend::Executable& executable_;
  const std::function<void(const Prediction&)>& take_;
  const std::span<const nn::ImageView> views_;
  const std::size_t batch_, result_;  // floats of a result
  const bool detects_;
  std::vector<float> memory_;
  float* const images_;
  std::size_t good_ = 0;
  std::vector<Picture> pictures_;
};

}  // namespace

void predict(const nn::Graph& graph, backend::Executable& executable, std::size_t count,
             const std::function<std::string(std::size_t)>& read, const PredictOptions& options,
             const std::function<void(const Prediction&)>& take) {
  DTRAIN_CHECK(options.batch >= 1 && options.threads >= 1, "pictures come in batches");
  data::check_augment(options.augment);
  const nn::Shape shape = graph.input();
  Batcher batcher(graph, executable, options, take);
  const auto make = [&](std::size_t i) -> Decoded {
    try {
      return decode(read(i), options, i, shape);
    } catch (const Stopped&) {
      throw;
    } catch (const Error& error) {
      return {.problem = error.what()};
    }
  };
  make_in_order<Decoded>(count, options.threads, make,
                         [&](std::size_t i, Decoded decoded) { batcher.add(i, std::move(decoded)); });
  batcher.compute();
}

}  // namespace dtrain::train
