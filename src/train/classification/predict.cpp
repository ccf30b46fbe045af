#include <dtrain/train/predict.hpp>

#include <algorithm>
#include <vector>

#include <dtrain/backend/aligned_room.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/ordered_work.hpp>

namespace dtrain::train {
namespace {

struct Decoded {
  std::vector<float> image = {};  // [c, h, w]
  std::string problem = {};
  nn::PictureObjects picture = {};  // of a detector
};

Decoded decode(const std::string& content, const PredictOptions& options, std::size_t index, const nn::Shape& shape) {
  thread_local data::Image scratch;
  Decoded decoded{.image = std::vector<float>(static_cast<std::size_t>(shape.size()))};
  if (options.detection) {
    data::decode_whole(bytes_of(content), options.augment, *options.detection, shape, scratch, decoded.image,
                       decoded.picture);
  } else {
    data::decode_and_augment(bytes_of(content), options.augment, {.sample = static_cast<std::uint32_t>(index)}, shape,
                             scratch, decoded.image);
  }
  return decoded;
}

// Gathers pictures until a batch is full. One thread.
class Batcher {
 public:
  Batcher(const nn::Graph& graph, backend::Executable& executable, int batch,
          const std::function<void(const Prediction&)>& take)
      : executable_(executable),
        take_(take),
        batch_(static_cast<std::size_t>(batch)),
        result_(static_cast<std::size_t>(nn::result_size(graph))),
        detects_(nn::detection_of(graph) != nullptr),
        image_(static_cast<std::size_t>(graph.input().size())),
        images_(backend::aligned_room(memory_, batch_ * image_)) {}

  void add(std::size_t index, Decoded decoded) {
    if (decoded.problem.empty()) {
      std::ranges::copy(decoded.image, images_ + filled_ * image_);
      ++filled_;
      objects_.push_back(std::move(decoded.picture));
    }
    pictures_.push_back({index, std::move(decoded.problem)});
    if (filled_ == batch_) compute();
  }

  void compute() {
    std::vector<float> logits(filled_ * result_);
    if (filled_ > 0) {
      const std::vector<std::int32_t> labels(filled_);
      const std::vector<std::uint32_t> ids(filled_);
      backend::HostBatch batch{static_cast<int>(filled_), images_, labels.data(), ids.data()};
      if (detects_) batch.objects = objects_.data();
      executable_.evaluate(batch, logits);
    }
    std::size_t computed = 0;
    for (Picture& each : pictures_) {
      if (!each.problem.empty()) {
        take_({each.index, {}, std::move(each.problem)});
      } else {
        take_({each.index, std::span(logits).subspan(computed * result_, result_), {}, &objects_[computed]});
        ++computed;
      }
    }
    pictures_.clear();
    objects_.clear();
    filled_ = 0;
  }

 private:
  struct Picture {
    std::size_t index = 0;
    std::string problem;
  };

  backend::Executable& executable_;
  const std::function<void(const Prediction&)>& take_;
  const std::size_t batch_, result_;  // floats of a result
  const bool detects_;
  const std::size_t image_;  // floats of an image
  std::vector<float> memory_;
  float* const images_;
  std::size_t filled_ = 0;
  std::vector<Picture> pictures_;
  std::vector<nn::PictureObjects> objects_;  // of those that are computed
};

}  // namespace

void predict(const nn::Graph& graph, backend::Executable& executable, std::size_t count,
             const std::function<std::string(std::size_t)>& read, const PredictOptions& options,
             const std::function<void(const Prediction&)>& take) {
  DTRAIN_CHECK(options.batch >= 1 && options.threads >= 1, "pictures come in batches");
  data::check_augment(options.augment);
  const nn::Shape shape = graph.input();
  Batcher batcher(graph, executable, options.batch, take);
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
